package doctor_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor"
)

// Frames of a made-up service, innermost first where they stand together.
var (
	handler = cost.Frame{Func: "example.org/shop.(*cart).ServeHTTP", File: "/src/shop/cart.go", Line: 12, Decl: 10}
	server  = cost.Frame{Func: "net/http.serverHandler.ServeHTTP", File: "net/http/server.go", Line: 1}
	conn    = cost.Frame{Func: "net/http.(*conn).serve", File: "net/http/server.go", Line: 2}
)

// within is a stack inside the handler: functions innermost first.
func within(count, value float64, funcs ...string) cost.Stack {
	s := cost.Stack{Count: count, Value: value}
	for _, fn := range funcs {
		s.Frames = append(s.Frames, cost.Frame{Func: fn})
	}
	s.Frames = append(s.Frames, handler, server, conn)
	return s
}

// alone is a stack outside of requests.
func alone(count, value float64, funcs ...string) cost.Stack {
	s := cost.Stack{Count: count, Value: value}
	for _, fn := range funcs {
		s.Frames = append(s.Frames, cost.Frame{Func: fn})
	}
	return s
}

const (
	seconds  = 10
	requests = 10_000
	tick     = 1e7 // ns that one stack stands for
)

// service is evidence of a service that is busy with its own code: 1,000 stacks
// of 10 ms in 10 s, for 10,000 requests.
func service(more ...cost.Stack) *doctor.Evidence {
	e := &doctor.Evidence{
		Window: cost.Window{Duration: seconds * time.Second, Requests: requests},
		CPU:    more, Allocs: []cost.Stack{}, Waits: []cost.Wait{},
		Traced: cost.Window{Duration: seconds * time.Second, Requests: requests},
		Busy:   8,
	}
	left := 1000.0
	for _, s := range more {
		left -= s.Count
	}
	e.CPU = append(e.CPU, within(left, left*tick, "example.org/shop.compute"))
	return e
}

// busy is count of 1,000 CPU stacks.
func busy(count float64, funcs ...string) cost.Stack { return within(count, count*tick, funcs...) }

// zipped is busy behind a middleware with a writer of its own.
func zipped(count float64, funcs ...string) cost.Stack {
	s := busy(count, funcs...)
	for i := range s.Frames {
		if strings.HasPrefix(s.Frames[i].Func, "example.org/zip.") {
			s.Frames[i].File = "/src/zip/zip.go"
		}
	}
	call := cost.Frame{Func: "net/http.HandlerFunc.ServeHTTP"}
	zip := cost.Frame{Func: "example.org/zip.Zip.func1", File: "/src/zip/zip.go", Line: 14, Decl: 12}
	s.Frames = append(s.Frames[:len(s.Frames)-2], zip, call, server, conn)
	return s
}

func waits(reason cost.Reason, times, each float64, funcs ...string) cost.Wait {
	return cost.Wait{Reason: reason, Stack: within(times, times*each, funcs...)}
}

func rule(t *testing.T, name string) doctor.Rule {
	t.Helper()
	for _, r := range doctor.Rules() {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("there is no rule %q", name)
	return doctor.Rule{}
}

// verdict is what one rule makes of evidence: its first finding's severity, or
// why there is none.
func verdict(t *testing.T, name string, e *doctor.Evidence) string {
	t.Helper()
	found, err := rule(t, name).Check(e)
	var missing *doctor.Missing
	switch {
	case errors.As(err, &missing):
		return "needs " + string(missing.Part)
	case err != nil:
		t.Fatal(err)
	case len(found) == 0:
		return "healthy"
	}
	for _, f := range found {
		if f.Rule != name || f.Title == "" || f.Threshold == "" || f.Remedy == "" || f.Verify == "" || len(f.Evidence) == 0 {
			t.Errorf("%s: incomplete finding %+v", name, f)
		}
	}
	return found[0].Severity.String()
}

// TestThresholds puts each rule's evidence below and beyond its threshold.
func TestThresholds(t *testing.T) {
	for _, tc := range []struct {
		rule, name string
		e          *doctor.Evidence
		want       string
	}{
		{"json", "none", service(), "healthy"},
		{"json", "less than a fifth", service(busy(190, "encoding/json.Marshal")), "cheap"},
		{"json", "a fifth, within its interval", service(busy(210, "encoding/json.Marshal")), "uncertain"},
		{"json", "beyond a fifth", service(busy(240, "encoding/json.Marshal")), "warning"},
		{"json", "half", service(busy(500, "reflect.Value.Field", "encoding/json.Marshal")), "serious"},
		{"json", "idle", &doctor.Evidence{CPU: []cost.Stack{busy(10, "encoding/json.Marshal")}}, "needs a busy service"},
		{"json", "no profile", &doctor.Evidence{}, "needs a CPU profile"},
		{"json", "sending what was encoded", service(busy(500, "syscall.write", "net.(*conn).Write", "net/http.(*response).Write", "encoding/json.(*Encoder).Encode")), "healthy"},
		{"json", "compressing it", service(zipped(500, "compress/flate.(*compressor).deflate", "example.org/zip.(*writer).Write", "encoding/json.(*Encoder).Encode")), "healthy"},
		{"json", "reading what is decoded", service(busy(500, "syscall.read", "net/http.(*body).Read", "encoding/json.(*Decoder).Decode")), "healthy"},
		{"json", "behind a middleware that compresses", service(zipped(240, "encoding/json.(*Encoder).Encode")), "warning"},
		{"format", "printing to a file", service(busy(60, "syscall.write", "os.(*File).Write", "fmt.Fprint")), "healthy"},
		{"format", "3 %, within its interval", service(busy(35, "fmt.Fprintf")), "uncertain"},
		{"format", "6 %", service(busy(60, "fmt.Fprintf")), "warning"},
		{"contexts", "1 %", service(busy(10, "context.value")), "cheap"},
		{"contexts", "3 %", service(busy(10, "context.value"), busy(20, "net/http.(*Request).WithContext")), "warning"},
		{"headers", "a tenth is usual", service(busy(100, "net/textproto.readMIMEHeader")), "cheap"},
		{"headers", "a third", service(busy(330, "net/textproto.readMIMEHeader")), "serious"},
		{"introspection", "some", service(busy(30, "runtime.readmemstats_m", "runtime.ReadMemStats")), "warning"},
		{"introspection", "for a line of slog's", service(busy(30, "runtime.callers", "runtime.Callers", "log/slog.(*Logger).log", "log/slog.(*Logger).Info")), "healthy"},
		{"introspection", "for a traceback beside it", service(busy(30, "runtime.Callers", "runtime/debug.Stack")), "warning"},
		{"introspection", "for a profile only", service(busy(30, "runtime.ReadMemStats", "runtime/pprof.writeHeapInternal", "net/http/pprof.handler.ServeHTTP")), "healthy"},
		{"compression", "fast", service(busy(500, "compress/flate.(*deflateFast).encode", "compress/flate.(*compressor).encSpeed")), "healthy"},
		{"compression", "hard", service(busy(400, "compress/flate.(*compressor).findMatch", "compress/flate.(*compressor).deflate")), "serious"},
		{"compression", "hard but little", service(busy(150, "compress/flate.(*compressor).deflate")), "cheap"},
		{"compression", "fast, klauspost's", service(busy(500, "github.com/klauspost/compress/flate.(*fastEncL1).Encode", "github.com/klauspost/compress/flate.(*compressor).storeFast")), "healthy"},
		{"compression", "hard, klauspost's", service(busy(400, "github.com/klauspost/compress/flate.(*fastEncL6).Encode", "github.com/klauspost/compress/flate.(*compressor).storeFast")), "serious"},
		{"compression", "harder, klauspost's", service(busy(400, "github.com/klauspost/compress/flate.(*compressor).deflateLazy", "github.com/klauspost/compress/gzip.(*Writer).Write")), "serious"},
		{"compression", "fast, zstd", service(busy(500, "github.com/klauspost/compress/zstd.(*fastEncoder).Encode")), "healthy"},
		{"compression", "hard, zstd", service(busy(400, "github.com/klauspost/compress/zstd.(*doubleFastEncoder).Encode")), "serious"},
		{"compression", "fast, brotli", service(busy(500, "github.com/andybalholm/brotli.compressFragmentTwoPass", "github.com/andybalholm/brotli.encodeData")), "healthy"},
		{"compression", "hard, brotli", service(busy(400, "github.com/andybalholm/brotli.createBackwardReferences", "github.com/andybalholm/brotli.encodeData")), "serious"},
		{"defers", "on the stack", service(busy(50, "runtime.deferreturn")), "healthy"},
		{"defers", "on the heap", service(busy(50, "runtime.newdefer", "runtime.deferproc")), "warning"},
		{"defers", "what is deferred is not the price", service(busy(5, "runtime.deferproc"), busy(500, "example.org/shop.close", "runtime.deferreturn")), "cheap"},
		{"gc", "a twentieth", service(alone(50, 50*tick, "runtime.gcDrain", "runtime.gcBgMarkWorker")), "cheap"},
		{"gc", "a fifth", service(alone(150, 150*tick, "runtime.gcDrain", "runtime.gcBgMarkWorker"), busy(50, "runtime.gcAssistAlloc", "runtime.mallocgc")), "warning"},
		{"gc", "half", service(alone(500, 500*tick, "runtime.gcDrain", "runtime.gcBgMarkWorker")), "serious"},
	} {
		if got := verdict(t, tc.rule, tc.e); got != tc.want {
			t.Errorf("%s, %s: got %s, want %s", tc.rule, tc.name, got, tc.want)
		}
	}
}

// TestWaits does the same for what requests wait for. They take 1 ms of CPU each
// and, where the load measured it, 10 ms altogether.
func TestWaits(t *testing.T) {
	const lock = "sync.(*Mutex).Lock"
	for _, tc := range []struct {
		rule, name string
		wait       cost.Wait
		want       string
	}{
		{"mutex", "1 % of the time", waits(cost.Lock, requests, 1e5, lock), "cheap"},
		{"mutex", "a tenth", waits(cost.Lock, requests, 1e6, lock), "warning"},
		{"mutex", "half", waits(cost.Lock, requests, 5e6, lock), "serious"},
		{"mutex", "once, long", waits(cost.Lock, 1, 1e10, lock), "uncertain"},
		{"mutex", "the logger's", waits(cost.Lock, requests, 5e6, lock, "log.(*Logger).output"), "healthy"},
		{"mutex", "a wait group", waits(cost.Lock, requests, 5e6, "sync.(*WaitGroup).Wait"), "healthy"},
		{"mutex", "outside of requests", cost.Wait{Reason: cost.Lock, Stack: alone(requests, 1e11, lock)}, "healthy"},
		{"logging", "the lock", waits(cost.Lock, requests, 5e6, lock, "log.(*Logger).output"), "serious"},
		{"logging", "the sink", waits(cost.SystemCall, requests, 1e6, "syscall.Write", "log/slog.(*Logger).Info"), "warning"},
		{"logging", "little", waits(cost.SystemCall, requests, 1e3, "syscall.Write", "log/slog.(*Logger).Info"), "cheap"},
		{"logging", "gin's", waits(cost.Lock, requests, 5e6, "internal/poll.(*fdMutex).rwlock", "os.(*File).Write", "fmt.Fprint", "github.com/gin-gonic/gin.LoggerWithConfig.func1"), "serious"},
		{"logging", "echo's", waits(cost.SystemCall, requests, 1e6, "syscall.write", "os.(*File).Write", "github.com/labstack/echo/v4/middleware.LoggerWithConfig.func3.1"), "warning"},
		{"logging", "to a writer of its own", waits(cost.SystemCall, requests, 1e6, "syscall.write", "os.(*File).Write", "example.org/rotate.(*File).Write", "github.com/gorilla/handlers.writeLog"), "warning"},
		{"logging", "what echo's logger is around", waits(cost.SystemCall, requests, 1e6, "syscall.read", "os.(*File).Read", "example.org/shop.users", "github.com/labstack/echo/v4/middleware.LoggerWithConfig.func3.1"), "healthy"},
		{"logging", "printed", waits(cost.SystemCall, requests, 1e6, "syscall.write", "os.(*File).Write", "fmt.Fprintf"), "warning"},
		{"logging", "an answer printed", waits(cost.Network, requests, 1e6, "net.(*conn).Write", "net/http.(*response).Write", "fmt.Fprintf"), "healthy"},
		{"logging", "another write", waits(cost.SystemCall, requests, 1e6, "syscall.Write"), "healthy"},
		{"sleep", "a tenth", waits(cost.Sleep, requests, 1e6, "time.Sleep"), "warning"},
		{"queue", "a pool of connections", waits(cost.Channel, requests, 1e6, "runtime.selectgo", "database/sql.(*DB).conn", "database/sql.(*DB).query"), "warning"},
		{"queue", "a semaphore", waits(cost.Channel, requests, 1e6, "runtime.selectgo", "golang.org/x/sync/semaphore.(*Weighted).Acquire"), "warning"},
		{"queue", "a full channel", waits(cost.Channel, requests, 1e6, "runtime.chansend1"), "warning"},
		{"queue", "work that is awaited", waits(cost.Channel, requests, 1e6, "runtime.chanrecv1"), "healthy"},
		{"queue", "a query", waits(cost.Network, requests, 6e6, "net.(*conn).Read", "database/sql.(*DB).conn", "database/sql.(*DB).query"), "healthy"},
		{"call", "most of the time", waits(cost.Channel, requests, 9e6, "runtime.selectgo", "net/http.(*persistConn).roundTrip", "net/http.(*Client).Do"), "serious"},
		{"call", "a third", waits(cost.Channel, requests, 7e6, "runtime.selectgo", "net/http.(*Client).Do"), "cheap"},
		{"call", "a query", waits(cost.Network, requests, 9e6, "net.(*conn).Read", "database/sql.(*DB).query"), "serious"},
		{"call", "for a connection to be free", waits(cost.Channel, requests, 9e6, "runtime.selectgo", "database/sql.(*DB).conn", "database/sql.(*DB).query"), "healthy"},
		{"call", "a name", waits(cost.Network, requests, 9e6, "net.(*conn).Read", "net.(*Resolver).LookupHost"), "serious"},
		{"fsync", "a tenth", waits(cost.SystemCall, requests, 1e6, "syscall.Fsync", "os.(*File).Sync"), "warning"},
		{"fsync", "a write", waits(cost.SystemCall, requests, 1e6, "syscall.write", "os.(*File).Write"), "healthy"},
		{"sleep", "in the background", cost.Wait{Reason: cost.Sleep, Stack: alone(requests, 1e11, "time.Sleep")}, "healthy"},
	} {
		e := service()
		e.Latency = 10 * time.Millisecond
		e.Waits = append(e.Waits, tc.wait)
		if got := verdict(t, tc.rule, e); got != tc.want {
			t.Errorf("%s, %s: got %s, want %s", tc.rule, tc.name, got, tc.want)
		}
		e.Waits = nil
		if got, want := verdict(t, tc.rule, e), "needs an execution trace"; got != want {
			t.Errorf("%s without a trace: got %s, want %s", tc.rule, got, want)
		}
	}
}

// TestWaitsApart tries each rule about waiting on a service that waits for that, and on
// seven that wait for something else.
func TestWaitsApart(t *testing.T) {
	services := []struct {
		rule string // that finds it; "" if none is to
		wait cost.Wait
	}{
		{"mutex", waits(cost.Lock, requests, 9e6, "sync.(*Mutex).Lock")},
		{"logging", waits(cost.SystemCall, requests, 9e6, "syscall.Write", "log/slog.(*Logger).Info")},
		{"sleep", waits(cost.Sleep, requests, 9e6, "time.Sleep")},
		{"queue", waits(cost.Channel, requests, 9e6, "runtime.selectgo", "golang.org/x/sync/semaphore.(*Weighted).Acquire")},
		{"call", waits(cost.Channel, requests, 9e6, "runtime.selectgo", "net/http.(*persistConn).roundTrip", "net/http.(*Client).Do")},
		{"fsync", waits(cost.SystemCall, requests, 9e6, "syscall.Fsync", "os.(*File).Sync")},
		{"", waits(cost.Scheduler, requests, 9e6, "runtime.Gosched")},
		{"", waits(cost.Network, requests, 9e6, "net.(*conn).Read", "net/http.(*body).Read")},
	}
	for _, s := range services {
		e := service()
		e.Latency = 10 * time.Millisecond
		e.Waits = append(e.Waits, s.wait)
		for _, other := range services {
			if other.rule == "" {
				continue
			}
			want := "healthy"
			if other.rule == s.rule {
				want = "serious"
			}
			if got := verdict(t, other.rule, e); got != want {
				t.Errorf("%s of a service that waits as %q is to find: got %s, want %s", other.rule, s.rule, got, want)
			}
		}
	}
}

// TestUncounted checks that prices come per second where nobody counted, and that
// the interval is that of a Poisson count.
func TestUncounted(t *testing.T) {
	e := service(busy(400, "encoding/json.Marshal"))
	e.Window.Requests = 0
	found, err := rule(t, "json").Check(e)
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want one finding", found, err)
	}
	p := found[0].Price
	if p.Per != "second" || p.Value != 4e8 || p.Share != 0.4 {
		t.Errorf("price %+v, want 400 ms per second, 0.4 of it all", p)
	}
	if want := 4e8 - 1.96*4e8/20; p.Low < want*0.999 || p.Low > want*1.001 { // the root of 400 is 20
		t.Errorf("lower end %g, want %g", p.Low, want)
	}
}

// TestShareOfGC checks that what allocates is charged its part of the collector's
// background work: half the bytes, half the work.
func TestShareOfGC(t *testing.T) {
	e := service(alone(200, 200*tick, "runtime.gcDrain", "runtime.gcBgMarkWorker"), busy(300, "encoding/json.Marshal"))
	e.Allocs = []cost.Stack{within(10, 1<<20, "encoding/json.Marshal"), within(10, 1<<20)}
	found, err := rule(t, "json").Check(e)
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want one finding", found, err)
	}
	if got, want := found[0].Price.Value, (300+100)*tick/requests; got != want {
		t.Errorf("price %g ns, want %g", got, want)
	}
	if got, want := fmt.Sprint(found[0].Evidence), "shop.(*cart).ServeHTTP (shop/cart.go:12)"; !strings.Contains(got, want) {
		t.Errorf("evidence %s, want %s in it", got, want)
	}
}

// TestHealthyTwins holds every rule against recorded evidence of every service
// without a fault: none may find anything.
func TestHealthyTwins(t *testing.T) {
	files, err := filepath.Glob("testdata/healthy/*.json.gz")
	if err != nil || len(files) < 16 {
		t.Fatalf("%d recordings, %v, want at least 16", len(files), err)
	}
	looked := map[string]int{}
	for _, name := range files {
		d := doctor.Examine(load(t, name))
		for _, f := range d.Findings {
			if f.Rule == "throttled" && strings.Contains(name, "procs") {
				looked[f.Rule]++ // its quota holds this twin back too, with GOMAXPROCS within it
				continue
			}
			t.Errorf("%s: %s: %s, %s", name, f.Rule, f.Title, f.Price)
		}
		for _, r := range d.Healthy {
			looked[r]++
		}
		for _, f := range append(d.Cheap, d.Uncertain...) {
			looked[f.Rule]++
		}
	}
	for _, r := range doctor.Rules() {
		if looked[r.Name] == 0 {
			t.Errorf("rule %s could not tell of any recording", r.Name)
		}
	}
}

func load(t *testing.T, name string) *doctor.Evidence {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := doctor.Load(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return e
}

// TestExamine checks that every rule is accounted for once, and the order.
func TestExamine(t *testing.T) {
	e := service(busy(400, "encoding/json.Marshal"), busy(300, "fmt.Sprint"), busy(10, "context.value"))
	e.Probe = &doctor.Probe{Waited: 11 * time.Second}
	e.Reasons = map[doctor.Part]string{doctor.GoroutineCounts: "nobody counted them"}
	d := doctor.Examine(e)
	var order []string
	for _, f := range d.Findings {
		order = append(order, f.Rule)
	}
	if got, want := strings.Join(order, " "), "json format timeouts"; got != want {
		t.Errorf("findings %s, want %s", got, want)
	}
	if n := len(d.Findings) + len(d.Uncertain) + len(d.Cheap) + len(d.Healthy) + len(d.Blind); n != len(doctor.Rules()) {
		t.Errorf("%d rules accounted for, want %d", n, len(doctor.Rules()))
	}
	if got, want := fmt.Sprint(d.Blind), "{goroutines goroutine profiles nobody counted them}"; !strings.Contains(got, want) {
		t.Errorf("not looked at: %s, want %s in it", got, want)
	}
	empty := doctor.Examine(&doctor.Evidence{})
	if len(empty.Blind) != len(doctor.Rules()) {
		t.Errorf("without evidence %d of %d rules say that they cannot tell", len(empty.Blind), len(doctor.Rules()))
	}
}

// idle is evidence of a service that did nothing but show its profiles.
func idle() *doctor.Evidence {
	profiling := []cost.Stack{alone(2, 2*tick, "runtime/pprof.writeHeap", "net/http/pprof.handler.ServeHTTP", server.Func, conn.Func)}
	e := &doctor.Evidence{
		Window: cost.Window{Duration: seconds * time.Second}, Traced: cost.Window{Duration: seconds * time.Second},
		CPU: profiling, Allocs: profiling, Live: [][]cost.Stack{{}, {}}, Counts: make([]doctor.Count, 3),
		Waits: []cost.Wait{{Reason: cost.Network, Stack: alone(1, 1e9, "internal/poll.(*FD).Read", conn.Func)}},
	}
	return e
}

// TestIdle checks that where there were no requests nothing is called healthy
// that only requests could show.
func TestIdle(t *testing.T) {
	for _, name := range []string{"mutex", "logging", "sleep", "buffers", "goroutines"} {
		if got, want := verdict(t, name, idle()), "needs requests meanwhile"; got != want {
			t.Errorf("%s, without requests: got %s, want %s", name, got, want)
		}
		e := idle()
		e.Allocs = append(e.Allocs, within(1, 512))
		if got, want := verdict(t, name, e), "healthy"; got != want {
			t.Errorf("%s, with one that allocated: got %s, want %s", name, got, want)
		}
		e.Reasons = map[doctor.Part]string{doctor.Traffic: "no request was answered"}
		if got, want := verdict(t, name, e), "needs requests meanwhile"; got != want {
			t.Errorf("%s, with one that allocated and none that was answered: got %s, want %s", name, got, want)
		}
	}
	e := idle() // what grows by itself is found all the same
	for i := range e.Counts {
		e.Counts[i] = doctor.Count{After: time.Duration(i) * time.Second, Goroutines: []cost.Stack{alone(100*float64(i+1), 0, "main.poll")}}
	}
	if got, want := verdict(t, "goroutines", e), "serious"; got != want {
		t.Errorf("goroutines that grow without requests: got %s, want %s", got, want)
	}
}

// TestInconclusive tells silence that means health from silence that means
// nothing.
func TestInconclusive(t *testing.T) {
	sick := idle()
	sick.Probe = &doctor.Probe{Waited: 11 * time.Second}
	well := idle()
	well.Probe = &doctor.Probe{Waited: time.Second, Closed: true}
	for _, tc := range []struct {
		name string
		e    *doctor.Evidence
		want bool
	}{
		{"nothing gathered", &doctor.Evidence{}, true},
		{"no requests", idle(), true},
		{"no requests, but its time-out is right", well, true},
		{"no requests, and a finding", sick, false},
		{"busy", service(), false},
		{"busy, and perhaps too dear", service(busy(210, "encoding/json.Marshal")), false},
	} {
		if d := doctor.Examine(tc.e); d.Inconclusive() != tc.want {
			t.Errorf("%s: inconclusive %t, want %t: %+v", tc.name, d.Inconclusive(), tc.want, d)
		}
	}
}

func TestSave(t *testing.T) {
	e := service(busy(1, "fmt.Sprint"))
	e.Subject = "shop"
	var b bytes.Buffer
	if err := e.Save(&b); err != nil {
		t.Fatal(err)
	}
	got, err := doctor.Load(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got.Subject != "shop" || len(got.CPU) != 2 || got.Allocs == nil || got.Counts != nil {
		t.Errorf("got %+v, want what was saved, and nothing else", got)
	}
	if _, err := doctor.Load(strings.NewReader("no evidence")); err == nil {
		t.Error("reading text succeeded, want an error")
	}
}

// FuzzLoad has every rule look at whatever can be read.
func FuzzLoad(f *testing.F) {
	e := service(busy(100, "encoding/json.Marshal"))
	e.Probe = &doctor.Probe{Waited: time.Second}
	e.Counts = make([]doctor.Count, 3)
	seed, err := json.Marshal(e)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"Memory":[{},{}],"Process":[{},{"Quota":{"CPUs":1}}],"Live":[[],[]]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.NoCompression)
		z.Write(in)
		z.Close()
		e, err := doctor.Load(&b)
		if err != nil {
			return
		}
		doctor.Examine(e)
	})
}

// TestPage holds the documentation's table against the rules.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Count(string(page), "\n| `")
	for _, r := range doctor.Rules() {
		row := fmt.Sprintf("| `%s` | %s | %s |\n", r.Name, r.Question, r.Threshold)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/doctor.md has no row\n%s", row)
		}
	}
	if rows != len(doctor.Rules()) {
		t.Errorf("docs/doctor.md has %d rows, want %d", rows, len(doctor.Rules()))
	}
}
