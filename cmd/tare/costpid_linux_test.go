//go:build linux && amd64

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/internal/injected"
)

// truth is what a middleware of arms/injected measured of itself.
type truth struct {
	Calls float64 `json:"calls"`
	Wall  float64 `json:"ns"`
	CPU   float64 `json:"cpu_ns"`
}

// crowded reports whether others had the processor for much of what took nothing
// but CPU: what they leave behind in the caches is then in the one figure, and
// what they took of calls that were measured is not in the other.
func crowded(inside map[string]truth) bool { return inside["spin"].Wall > 1.15*inside["spin"].CPU }

func readTruth(t *testing.T, url string) map[string]truth {
	t.Helper()
	res, err := http.Get(url + "truth")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all map[string]truth
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestInjectedFromOutside holds what is seen from outside against what middlewares
// of known cost measured of themselves: within 5 % or 1 µs, beyond what comes of
// how few stacks were seen.
func TestInjectedFromOutside(t *testing.T) {
	if ok, err := condition("bpf"); err != nil || !ok {
		t.Skipf("no sampling from outside here: %v", err)
	}
	path := injected.Build(t)
	s := injected.Start(t, path, "-lock", "10us")
	defer s.Stop()
	url := strings.TrimSuffix(s.URL, "/") + "/"
	var busy int
	lengths := []string{"5s", "10s", "20s"} // longer if the machine is busy
	for _, d := range lengths {
		var out, errs bytes.Buffer
		args := []string{"cost", "--pid", strconv.Itoa(s.PID), "--hz", "999", "--for", d, "--load", url, "-c", "2", "--json"}
		if status := run(t.Context(), args, &cli.Terminal{Out: &out, Err: &errs, Piped: true, Columns: 80}); status != 0 {
			t.Fatalf("tare %v: exit status %d\n%s", args, status, errs.String())
		}
		var bill cost.Bill
		if err := json.Unmarshal(out.Bytes(), &bill); err != nil {
			t.Fatal(err)
		}
		inside := readTruth(t, url)
		if agrees(t, &bill, inside) {
			return
		}
		if crowded(inside) {
			busy++
		}
	}
	if busy == len(lengths) {
		t.Skip("this machine is too busy: others had the processor amid what was to be measured")
	}
	t.Error("what was seen never agreed with what was measured inside")
}

// agrees reports whether a bill has each injected cost as it is, and says by how
// much not.
func agrees(t *testing.T, bill *cost.Bill, inside map[string]truth) bool {
	t.Helper()
	all := true
	for owner, what := range map[string]string{"layers.Spin": "spin", "layers.Alloc": "alloc", "layers.Lock": "lock"} {
		want := inside[what].CPU / inside[what].Calls
		var it cost.Item
		for _, i := range bill.Items {
			if i.Owner == owner && i.Kind == cost.Middleware.String() {
				it = i
			}
		}
		const share, least = 0.05, 1000
		off := math.Abs(it.Self - want)
		ok := off <= max(share*want, least)+it.Margin && it.Margin < want/2
		t.Logf("%s: %.0f ± %.0f ns outside, %.0f inside, agrees %t", owner, it.Self, it.Margin, want, ok)
		all = all && ok
	}
	return all
}

// TestCostOfStopped looks at a process that is stopped, and says that it is.
func TestCostOfStopped(t *testing.T) {
	if ok, err := condition("bpf"); err != nil || !ok {
		t.Skipf("no sampling from outside here: %v", err)
	}
	s := injected.Start(t, injected.Build(t))
	defer s.Stop()
	if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	status, out, said := costOf(t, s.PID)
	if err := syscall.Kill(s.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	const want = "is stopped, by a signal or by a debugger"
	if status != 0 || !strings.Contains(out, want) {
		t.Errorf("got status %d, %s%s, want that it %s", status, out, said, want)
	}
}
