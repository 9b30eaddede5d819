package pprof_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

func find(t *testing.T, url string) *pprof.Service {
	t.Helper()
	s, err := pprof.Find(url)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGoroutines starts goroutines that wait, and wants them counted, and the
// line that started them.
func TestGoroutines(t *testing.T) {
	s := find(t, service(t).URL)
	stop := make(chan struct{})
	var started, parked sync.WaitGroup
	defer parked.Wait()
	defer close(stop)
	_, file, line, _ := runtime.Caller(0)
	for range 100 {
		parked.Add(1)
		started.Add(1)
		go park(stop, &started, &parked)
	}
	started.Wait()
	p, err := s.Goroutines(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	const began = "github.com/tarehq/tare/cost/pprof_test.park"
	var n float64
	for _, st := range p.Stacks {
		if len(st.Frames) > 0 && st.Frames[len(st.Frames)-1].Func == began {
			n += st.Count
		}
	}
	if n != 100 {
		t.Errorf("%g goroutines began with %s, want 100", n, began)
	}
	births, err := s.Births(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := cost.Frame{Func: "github.com/tarehq/tare/cost/pprof_test.TestGoroutines", File: file, Line: line + 4}
	if births[began] != want {
		t.Errorf("%s was started at %+v, want %+v", began, births[began], want)
	}
}

//go:noinline
func park(stop chan struct{}, started, parked *sync.WaitGroup) {
	started.Done()
	defer parked.Done()
	<-stop
}

// TestMemory holds what the text says against the runtime of the same process.
func TestMemory(t *testing.T) {
	s := find(t, service(t).URL)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m, err := s.Memory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	for _, tc := range []struct {
		name     string
		got      float64
		low, top float64
	}{
		{"cycles", m.Cycles, float64(before.NumGC), float64(after.NumGC)},
		{"forced cycles", m.Forced, float64(before.NumForcedGC), float64(after.NumForcedGC)},
		{"allocated", m.Allocated, float64(before.TotalAlloc), float64(after.TotalAlloc)},
		{"pauses", float64(len(m.Pauses)), min(256, float64(before.NumGC)), 256},
		{"longest pause", float64(slices.Max(m.Pauses)), float64(slices.Max(before.PauseNs[:])), 1e9},
		{"next collection", m.NextGC, 4 << 20, float64(after.Sys)},
	} {
		if tc.got < tc.low || tc.got > tc.top {
			t.Errorf("%s: got %g, want %g to %g", tc.name, tc.got, tc.low, tc.top)
		}
	}
}

// held stays in use.
var held []byte

// through is what a profile charges to stacks through a function, by the end of its name.
func through(p *pprof.Profile, function string) (sum float64) {
	for _, s := range p.Stacks {
		for _, f := range s.Frames {
			if strings.HasSuffix(f.Func, function) {
				sum += s.Value
			}
		}
	}
	return sum
}

func TestLive(t *testing.T) {
	s := find(t, service(t).URL)
	held = make([]byte, 32<<20)
	runtime.GC()
	p, err := s.Live(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	bytes := through(p, ".TestLive")
	if bytes != 32<<20 {
		t.Errorf("%g bytes in use that this test allocated, want 32 MiB", bytes)
	}
	runtime.KeepAlive(held)
	held = nil
}

// TestAllocated wants what was allocated just now, though no collection has come since.
func TestAllocated(t *testing.T) {
	s := find(t, service(t).URL)
	before, err := s.Allocated(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	held = make([]byte, 32<<20)
	held = nil
	after, err := s.Allocated(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	since, err := after.Since(before)
	if err != nil {
		t.Fatal(err)
	}
	bytes := through(since, ".TestAllocated")
	if bytes < 32<<20 || bytes > 40<<20 { // it also allocates to ask
		t.Errorf("%g bytes allocated by this test between the profiles, want 32 MiB and a little", bytes)
	}
}

// TestContention has two goroutines want one lock, and wants the one that held
// it named.
func TestContention(t *testing.T) {
	s := find(t, service(t).URL)
	was := runtime.SetMutexProfileFraction(1)
	defer runtime.SetMutexProfileFraction(was)
	var mu sync.Mutex
	stop := make(chan struct{})
	var done sync.WaitGroup
	for range 2 {
		done.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					hold(&mu)
				}
			}
		})
	}
	p, err := s.Contention(context.Background(), time.Second)
	close(stop)
	done.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range p.Stacks {
		for _, f := range st.Frames {
			if strings.HasSuffix(f.Func, ".hold") && st.Value > 0 && st.Count > 0 {
				return
			}
		}
	}
	t.Errorf("%d stacks, none of which is of hold", len(p.Stacks))
}

//go:noinline
func hold(mu *sync.Mutex) {
	mu.Lock()
	time.Sleep(time.Millisecond)
	mu.Unlock()
}

func TestTextRefused(t *testing.T) {
	url := service(t).URL
	odd := find(t, url+"/none")
	if _, err := odd.Memory(context.Background()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("memory of a service without profiles: error %v, want 404 in it", err)
	}
	if _, err := odd.Births(context.Background()); err == nil {
		t.Error("births of a service without profiles: no error")
	}
	var refused *pprof.Refusal
	if _, err := odd.Leaked(context.Background()); !errors.As(err, &refused) || refused.Code != http.StatusNotFound {
		t.Errorf("leaks of a service without profiles: error %v, want a refusal with 404", err)
	}
}

// TestLeaked reads what runtime/pprof wrote, of a program built by Go 1.26.8 with
// GOEXPERIMENT=goroutineleakprofile, of three goroutines that send to nobody and
// one that waits by select {}.
func TestLeaked(t *testing.T) {
	recorded, err := os.ReadFile("testdata/goroutineleak.pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/goroutineleak", func(w http.ResponseWriter, _ *http.Request) { w.Write(recorded) })
	s := httptest.NewServer(mux)
	defer s.Close()
	p, err := find(t, s.URL).Leaked(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, s := range p.Stacks {
		got[s.Frames[len(s.Frames)-1].Func] += s.Count
	}
	if want := map[string]float64{"main.leave.func1": 3, "main.main.func1": 1}; p.Kind != pprof.Leaks || !maps.Equal(got, want) {
		t.Errorf("%s profile of %v, want %v", p.Kind, got, want)
	}
}

// FuzzText must not panic, whatever a service answers.
func FuzzText(f *testing.F) {
	f.Add([]byte("heap profile: 0: 0\n\n# runtime.MemStats\n# NumGC = 3\n# NextGC = 4\n# TotalAlloc = 5\n# PauseNs = [1 0 x]\n"))
	f.Add([]byte("goroutine 1 [running]:\nmain.f(0x1)\n\t/src/f.go:3 +0x1\ncreated by main.main in goroutine 1\n\t/src/f.go:9 +0x2\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := pprof.ReadMemory(text); err == nil && m == nil {
			t.Error("neither memory nor an error")
		}
		for began, at := range pprof.ReadBirths(text) {
			if began == "" || at.Func == "" {
				t.Errorf("%q was started at %+v", began, at)
			}
		}
	})
}
