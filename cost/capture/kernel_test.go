package capture

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// TestAdopt has 10,000 stacks that stand for 100 s, of what the kernel counted.
func TestAdopt(t *testing.T) {
	const seen, second = 100 * time.Second, time.Second
	for _, tt := range []struct {
		used, want time.Duration
		warned     string // "" = not
	}{
		{250 * second, 250 * second, "40.0 % of the CPU"},
		{110 * second, 110 * second, "90.9 % of the CPU"},
		{104 * second, 104 * second, "96.2 % of the CPU"},
		{102 * second, 102 * second, ""}, // a little
		{99 * second, 99 * second, ""},
		{90 * second, 90 * second, "111.1 % of the CPU"},
		{20 * second, seen, "left as it is"}, // another process's
		{0, seen, ""},                        // nothing was counted
	} {
		frames := []cost.Frame{{Func: "main.main"}}
		p := pprof.New(pprof.CPU, seen, []cost.Stack{
			{Frames: frames, Count: 7500, Value: 75e9}, {Frames: frames, Count: 2500, Value: 25e9},
		})
		Kernel{All: tt.used}.adopt(p, 1)
		sum, count := 0.0, 0.0
		for _, s := range p.Stacks {
			sum += s.Value
			count += s.Count
		}
		warned := fmt.Sprint(p.Warnings)
		if math.Abs(sum-float64(tt.want)) > 100 || count != 10_000 || (tt.warned == "") != (len(p.Warnings) == 0) || !strings.Contains(warned, tt.warned) {
			t.Errorf("counted %s: stacks add up to %s, seen %v times, warnings %v; want %s, %q", tt.used, time.Duration(sum), count, p.Warnings, tt.want, tt.warned)
		}
	}
}

// TestAdoptBesideMonitor leaves the thread out that the profiler does not watch.
func TestAdoptBesideMonitor(t *testing.T) {
	p := pprof.New(pprof.CPU, 10*time.Second, []cost.Stack{{Frames: []cost.Frame{{Func: "main.main"}}, Count: 900, Value: 9e9}})
	Kernel{All: 11 * time.Second, Monitor: 2 * time.Second}.adopt(p, 1)
	if s := p.Stacks; len(s) != 2 || math.Abs(s[0].Value-9e9) > 1 || s[1].Value != 2e9 || s[1].Frames[0].Func != cost.SystemMonitor || len(p.Warnings) > 0 {
		t.Errorf("stacks %+v, warnings %v; want 9 s as they were seen, 2 s of the monitor, no warning", p.Stacks, p.Warnings)
	}
}

// A later reading that does not tell of the monitor leaves it out, not beyond all.
func TestKernelSince(t *testing.T) {
	earlier := Kernel{All: 10 * time.Second, Monitor: 3 * time.Second}
	for later, want := range map[Kernel]Kernel{
		{All: 14 * time.Second, Monitor: 4 * time.Second}: {All: 2 * time.Second, Monitor: time.Second / 2},
		{All: 14 * time.Second}:                           {All: 2 * time.Second},
	} {
		if got := later.since(earlier, 0.5); got != want {
			t.Errorf("half of %+v since %+v: got %+v, want %+v", later, earlier, got, want)
		}
	}
}

// TestAdoptByChance does not warn of what so few stacks may well be off by.
func TestAdoptByChance(t *testing.T) {
	p := pprof.New(pprof.CPU, time.Second, []cost.Stack{{Frames: []cost.Frame{{Func: "main.main"}}, Count: 4, Value: 4e7}})
	Kernel{All: 60 * time.Millisecond}.adopt(p, 1)
	if sum := p.Stacks[0].Value; math.Abs(sum-6e7) > 1 || len(p.Warnings) > 0 {
		t.Errorf("stacks add up to %v, warnings %v; want 6e7 and none", sum, p.Warnings)
	}
}

func TestFindListener(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: who listens is read in /proc")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	gone := l.Addr().String()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for url, want := range map[string]int{
		s.URL + "/debug/pprof/": os.Getpid(),
		"http://192.0.2.1:80/":  0,
		"http://" + gone:        0,
		"http://%zz/":           0,
	} {
		if got, err := findListener(t.Context(), url); got != want || (err == nil) != (want > 0) {
			t.Errorf("findListener(%q) = %d, %v, want process %d", url, got, err, want)
		}
	}
}
