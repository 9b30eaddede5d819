package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/internal/injected"
)

// TestRequestsFromOutside has a service under somebody else's load: its requests are
// counted from outside, as many as it counted itself, unless that is not wanted.
func TestRequestsFromOutside(t *testing.T) {
	if ok, err := condition("bpf"); err != nil || !ok {
		t.Skipf("no sampling from outside here: %v", err)
	}
	s := injected.Start(t, injected.Build(t))
	defer s.Stop()
	url := strings.TrimSuffix(s.URL, "/") + "/"
	defer others(t, url, 2)()
	var counted *cost.Bill
	var most, margin float64
	for d := 3 * time.Second; ; d *= 2 { // the machine may be busy
		before := readTruth(t, url)["spin"].Calls
		counted = billOf(t, s.PID, "--for", d.String())
		most = readTruth(t, url)["spin"].Calls - before
		if margin = counted.RequestsMargin; counted.Per == "request" && margin > 0 {
			break
		}
		if d > 20*time.Second {
			t.Fatalf("got costs per %s, %.0f ± %.0f requests, want them counted; warnings %q", counted.Per, counted.Requests, margin, counted.Warnings)
		}
		if !slices.ContainsFunc(counted.Warnings, func(w string) bool { return strings.HasPrefix(w, "requests were not counted from outside: ") }) {
			t.Errorf("got costs per %s and warnings %q, want to be told why requests were not counted", counted.Per, counted.Warnings)
		}
	}
	t.Logf("%.0f ± %.0f requests in %.1f s, of %.0f in all", counted.Requests, margin, counted.Seconds, most)
	if counted.Requests-2*margin > most || counted.Requests+2*margin < most/20 {
		t.Errorf("got %.0f ± %.0f requests, want no more than the %.0f that there were", counted.Requests, margin, most)
	}
	spin := counted.Items[0]
	for _, it := range counted.Items {
		if it.Owner == "layers.Spin" {
			spin = it
		}
	}
	if spin.Margin < spin.Self*margin/counted.Requests {
		t.Errorf("%s takes %.0f ± %.0f ns, want the margin to have that of the requests in it", spin.Owner, spin.Self, spin.Margin)
	}
	if not := billOf(t, s.PID, "--no-count"); not.Per != "second" || not.Requests != 0 {
		t.Errorf("got costs per %s, %.0f requests, want none counted", not.Per, not.Requests)
	}
	if told := billOf(t, s.PID, "--requests", "1000"); told.Requests != 1000 || told.RequestsMargin != 0 {
		t.Errorf("got %.0f ± %.0f requests, want those that were told", told.Requests, told.RequestsMargin)
	}
}

// others are clients that nobody knows of, until the function returned is called.
func others(t *testing.T, url string, n int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				res, err := http.Get(url)
				if err != nil {
					continue
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// billOf is the bill of a process that tare cost prints.
func billOf(t *testing.T, pid int, more ...string) *cost.Bill {
	t.Helper()
	status, out, said := costOf(t, pid, append(more, "--json")...)
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, said)
	}
	var bill cost.Bill
	if err := json.Unmarshal([]byte(out), &bill); err != nil {
		t.Fatal(err)
	}
	return &bill
}

// TestUncountedGroup looks at a group of processes that are no Go programs: why their
// requests are not counted is said once.
func TestUncountedGroup(t *testing.T) {
	if ok, err := condition("bpf"); err != nil || !ok {
		t.Skipf("no sampling from outside here: %v", err)
	}
	var pids []int
	var all []*exec.Cmd
	end := func() {
		for _, c := range all {
			c.Process.Kill()
			c.Wait()
		}
		all = nil
	}
	t.Cleanup(end)
	for range 3 {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Skipf("no program to start that is not Go's: %v", err)
		}
		all, pids = append(all, c), append(pids, c.Process.Pid)
	}
	group := confine(t, pids[0], end)
	for _, pid := range pids[1:] {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status, out, errs := tare(t, "cost", "--cgroup", group, "--for", "1s")
	const want = "they cannot be in any of the 3 processes; of the first: reading functions of process "
	if status != 0 || !strings.Contains(out, want) || strings.Count(out, "reading functions") != 1 || strings.Contains(out, "/proc/self") {
		t.Errorf("got status %d, %s%s, want %q and no more of it", status, out, errs, want)
	}
}
