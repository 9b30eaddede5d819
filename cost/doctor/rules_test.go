package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/doctor/compiler"
	"github.com/tarehq/tare/cost/doctor/proc"
)

// pooled is a service of which so many requests found a pool empty, and where
// collections emptied it so often.
func pooled(missed, cycles float64, getter string) *doctor.Evidence {
	e := service(busy(200, "runtime.mallocgc", "example.org/shop.newBuffer", "sync.(*Pool).Get"))
	s := within(missed, missed*(16<<10), "example.org/shop.newBuffer", "sync.(*Pool).Get")
	if getter != "" {
		s.Frames[2] = cost.Frame{Func: getter}
		e.CPU[0].Frames[3] = s.Frames[2]
	}
	e.Allocs = []cost.Stack{s}
	e.Memory = []doctor.Memory{{Cycles: 100}, {Cycles: 100 + cycles}}
	return e
}

func TestPool(t *testing.T) {
	for _, tc := range []struct {
		name string
		e    *doctor.Evidence
		want string
	}{
		{"every request", pooled(requests, 10, ""), "warning"},
		{"a twentieth", pooled(400, 1, ""), "healthy"},
		// (1 + 100 cycles) × (4 × 2 processors + 8 requests at once) = 1,616
		{"as often as collections explain", pooled(1600, 100, ""), "healthy"},
		{"more often", pooled(1700, 100, ""), "warning"},
		{"in the standard library", pooled(requests, 10, "fmt.newPrinter"), "healthy"},
		{"in a module without a dot", pooled(requests, 10, "shop/codec.Encode"), "warning"},
	} {
		if got := verdict(t, "pool", tc.e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// audit is a middleware around the handler.
var audit = cost.Frame{Func: "example.org/shop.(*audit).ServeHTTP", File: "/src/shop/audit.go", Line: 14, Decl: 12}

// audited is a service with that middleware, which has so many stacks of its own.
func audited(own float64, funcs ...string) *doctor.Evidence {
	around := alone(own, own*tick, funcs...)
	around.Frames = append(around.Frames, audit, server, conn)
	inside := busy(10, "example.org/shop.compute")
	inside.Frames = append(inside.Frames[:len(inside.Frames)-2], audit, server, conn)
	return service(around, inside)
}

// TestOwners wants a middleware named that takes much by itself, and whoever does in each
// request what could be done once; not the handler's own work.
func TestOwners(t *testing.T) {
	compile := []string{"regexp/syntax.Parse", "regexp.compile", "regexp.MustCompile"}
	for _, tc := range []struct {
		name   string
		e      *doctor.Evidence
		want   string
		says   string // title and evidence
		remedy string
	}{
		{"the handler's work", service(), "healthy", "", ""},
		{"the handler compiles", service(busy(50, compile...)), "warning", "shop.(*cart).ServeHTTP spends 5.0 % of the CPU on compiling regular expressions", "do it once"},
		{"it did so once", service(busy(5, compile...)), "cheap", "", ""},
		{"a middleware compiles", audited(330, compile...), "serious", "regexp.MustCompile, called by shop.(*audit).ServeHTTP (shop/audit.go:14)", "do it once"},
		{"templates", audited(60, "html/template.(*escaper).escapeAction", "html/template.escapeTemplate", "html/template.(*Template).Execute"), "warning", "on parsing templates", "do it once"},
		{"keys", audited(60, "math/big.nat.expNN", "crypto/x509.ParsePKCS1PrivateKey", "example.org/shop.key"), "warning", "on parsing or making keys", "do it once"},
		{"settings", audited(330, "encoding/json.(*decodeState).object", "encoding/json.Unmarshal"), "serious", "json.Unmarshal, called by shop.(*audit).ServeHTTP (shop/audit.go:14)", "look at what it calls"},
		{"passwords", audited(330, "golang.org/x/crypto/blowfish.encryptBlock", "golang.org/x/crypto/bcrypt.CompareHashAndPassword"), "serious", "the middleware shop.(*audit).ServeHTTP takes 33.0 % of the CPU by itself", "slow on purpose"},
		{"passwords in a handler", service(busy(330, "golang.org/x/crypto/bcrypt.CompareHashAndPassword")), "healthy", "", ""},
		{"its own code", audited(330, "example.org/shop.sum"), "serious", "shop.sum: 330 µs", "look at what it calls"},
		{"a light middleware", audited(150, "example.org/shop.sum"), "healthy", "", ""},
		{"a fifth, within its interval", audited(210, "example.org/shop.sum"), "uncertain", "", ""},
		{"compressing", audited(500, "compress/flate.(*deflateFast).encode", "compress/gzip.(*Writer).Write"), "healthy", "", ""},
		{"a profile", service(busy(330, "regexp.MustCompile", "net/http/pprof.Index")), "healthy", "", ""},
	} {
		if got := verdict(t, "owners", tc.e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
		if tc.says == "" {
			continue
		}
		found, _ := rule(t, "owners").Check(tc.e)
		if len(found) != 1 || !strings.Contains(fmt.Sprint(found[0].Title, found[0].Evidence), tc.says) || !strings.Contains(found[0].Remedy, tc.remedy) {
			t.Errorf("%s: got %+v, want %q with remedy %q", tc.name, found, tc.says, tc.remedy)
		}
	}
}

// TestRouterContexts wants nothing said of a value that a router itself puts into each
// request's context, and what a middleware adds inside it told all the same.
func TestRouterContexts(t *testing.T) {
	const mux = "github.com/go-chi/chi/v5.(*Mux).ServeHTTP"
	routed := cost.Stack{Count: 40, Value: 40 * tick, Frames: []cost.Frame{{Func: "net/http.(*Request).WithContext"}, {Func: mux}, server, conn}}
	if got := verdict(t, "contexts", service(routed)); got != "healthy" {
		t.Errorf("a router's own value: got %s, want healthy", got)
	}
	added := routed
	added.Frames = []cost.Frame{{Func: "net/http.(*Request).WithContext"}, handler, {Func: "net/http.HandlerFunc.ServeHTTP"}, {Func: mux}, server, conn}
	if got := verdict(t, "contexts", service(added)); got != "warning" {
		t.Errorf("a handler's inside it: got %s, want warning", got)
	}
}

func TestCompressors(t *testing.T) {
	for _, made := range []string{"compress/flate.NewWriter", "github.com/klauspost/compress/flate.NewWriterDict", "github.com/klauspost/compress/zstd.encoderOptions.encoder", "github.com/andybalholm/brotli.NewWriterLevel"} {
		e := service(busy(100, made))
		e.Allocs = []cost.Stack{within(requests, requests*8e5, made)}
		if got := verdict(t, "compression", e); got != "warning" {
			t.Errorf("%s each: got %s, want warning", made, got)
		}
		e.CPU = service().CPU
		if got := verdict(t, "compression", e); got != "cheap" {
			t.Errorf("%s now and then: got %s, want cheap", made, got)
		}
	}
}

// TestBuffers checks what tells memory that stays from garbage.
func TestBuffers(t *testing.T) {
	const grow = "bytes.growSlice"
	for _, tc := range []struct {
		name                 string
		before, after, fresh cost.Stack
		want                 string
	}{
		{"stays", within(4, 32<<20, grow), within(4, 32<<20, grow), within(0, 0), "warning"},
		{"comes and goes", within(4, 32<<20, grow), within(4, 32<<20, grow), within(100, 800<<20, grow), "healthy"},
		{"was not there before", within(0, 0), within(4, 32<<20, grow), within(0, 0), "healthy"},
		{"small ones", within(4096, 32<<20, grow), within(4096, 32<<20, grow), within(0, 0), "healthy"},
		{"one", within(1, 1<<20, grow), within(1, 1<<20, grow), within(0, 0), "cheap"},
		{"not of a request", alone(4, 32<<20, grow), alone(4, 32<<20, grow), within(0, 0), "healthy"},
	} {
		e := service()
		e.Live = [][]cost.Stack{{tc.before}, {tc.after, alone(1, 8<<20, "main.main")}}
		e.Allocs = []cost.Stack{tc.fresh}
		if got := verdict(t, "buffers", e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestGoroutines(t *testing.T) {
	began := cost.Frame{Func: "example.org/shop.(*cart).ServeHTTP.func1", File: "/src/shop/cart.go", Decl: 20}
	for _, tc := range []struct {
		name   string
		counts []float64
		stack  []cost.Frame
		want   string
	}{
		{"growing", []float64{10, 30, 50, 70}, []cost.Frame{began}, "serious"},
		{"constant", []float64{70, 70, 70, 70}, []cost.Frame{began}, "healthy"},
		{"up and down", []float64{10, 70, 30, 90}, []cost.Frame{began}, "healthy"},
		{"once", []float64{10, 70, 70, 70}, []cost.Frame{began}, "healthy"},
		{"few", []float64{1, 3, 6, 9}, []cost.Frame{began}, "healthy"},
		{"connections", []float64{10, 30, 50, 70}, []cost.Frame{{Func: "net/http.(*connReader).Read"}, {Func: "net/http.(*conn).readRequest"}, conn}, "healthy"},
		{"requests that do not end", []float64{10, 30, 50, 70}, []cost.Frame{{Func: "runtime.chanrecv1"}, handler, server, conn}, "warning"},
		{"as many as ever", []float64{10, 12, 9, 11}, []cost.Frame{{Func: "runtime.chanrecv1"}, handler, server, conn}, "healthy"},
	} {
		e := service()
		for i, n := range tc.counts {
			e.Counts = append(e.Counts, doctor.Count{After: time.Duration(i) * time.Second, Goroutines: []cost.Stack{{Frames: tc.stack, Count: n}}})
		}
		e.Births = map[string]cost.Frame{began.Func: {Func: handler.Func, File: handler.File, Line: 20}}
		if got := verdict(t, "goroutines", e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
		if tc.want != "serious" {
			continue
		}
		found, _ := rule(t, "goroutines").Check(e)
		// 60 more in 3 s, in which there were 3,000 requests.
		if p := found[0].Price; p.Value != 0.02 || !strings.Contains(found[0].Title, "shop/cart.go:20") {
			t.Errorf("price %+v, title %q, want 0.02 a request, started at shop/cart.go:20", p, found[0].Title)
		}
	}
}

// TestLeaked has the collector name goroutines that wait for ever: whether they
// grow or not, and once only if they do.
func TestLeaked(t *testing.T) {
	began := cost.Frame{Func: "example.org/shop.(*cart).ServeHTTP.func1", File: "/src/shop/cart.go", Decl: 20}
	sending := []cost.Frame{{Func: "runtime.gopark"}, {Func: "runtime.chansend"}, {Func: "runtime.chansend1"}, began}
	for _, tc := range []struct {
		name   string
		counts []float64
		leaked []cost.Stack
		want   string
	}{
		{"old", []float64{30, 30, 30}, []cost.Stack{{Frames: sending, Count: 30}}, "serious"},
		{"old, in two parts", []float64{12, 12, 12}, []cost.Stack{{Frames: sending, Count: 6}, {Frames: sending, Count: 6}}, "serious"},
		{"few", []float64{3, 3, 3}, []cost.Stack{{Frames: sending, Count: 3}}, "cheap"},
		{"meant", []float64{30, 30, 30}, []cost.Stack{{Frames: []cost.Frame{{Func: "runtime.gopark"}, {Func: "runtime.block"}, began}, Count: 30}}, "healthy"},
		{"growing", []float64{30, 50, 70}, []cost.Stack{{Frames: sending, Count: 70}}, "serious"},
	} {
		e := service()
		for i, n := range tc.counts {
			e.Counts = append(e.Counts, doctor.Count{After: time.Duration(i) * time.Second, Goroutines: []cost.Stack{{Frames: sending, Count: n}}})
		}
		e.Leaked = tc.leaked
		if got := verdict(t, "goroutines", e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
		if found, _ := rule(t, "goroutines").Check(e); len(found) > 1 {
			t.Errorf("%s: %d findings of one leak", tc.name, len(found))
		} else if tc.name == "growing" && !strings.Contains(fmt.Sprint(found[0].Evidence), "by the collector's word") {
			t.Errorf("%s: evidence %v, want the collector's word in it", tc.name, found[0].Evidence)
		}
	}
}

// TestPredictions checks the arithmetic: a heap of 40 MiB that is collected at 44
// has room for 4; four times the GOGC gives room for 16, a quarter of the price.
func TestPredictions(t *testing.T) {
	e := service(alone(400, 400*tick, "runtime.gcDrain", "runtime.gcBgMarkWorker"))
	live := []cost.Stack{alone(1, 40<<20, "main.main")}
	e.Live = [][]cost.Stack{live, live}
	e.Memory = []doctor.Memory{{}, {Cycles: 50, NextGC: 44 << 20}}
	e.Process = make([]proc.Facts, 2)
	e.Process[1].Free, e.Process[1].Limit = 8<<30, 1<<30
	found, err := rule(t, "gc").Check(e)
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want one finding", found, err)
	}
	rows := fmt.Sprint(found[0].Evidence)
	price := found[0].Price.Value
	for _, want := range []doctor.Row{
		{What: "collections a second", Value: 5, Unit: "/s"},
		{What: "predicted with GOGC=40 in place of 10 (heap to 56.0 MiB)", Value: price / 4, Unit: "ns"},
		// A quarter of the limit's 1 GiB: room for 216 MiB in place of 4.
		{What: "predicted with GOGC=off and GOMEMLIMIT=256MiB", Value: price * 4 / 216, Unit: "ns"},
	} {
		if !strings.Contains(rows, want.String()) {
			t.Errorf("evidence %s\nwant %s in it", rows, want)
		}
	}
	// What another setting forbids is not predicted.
	for _, set := range []map[string]string{{"GOMEMLIMIT": "48MiB"}, {"GOGC": "off", "GOMEMLIMIT": "48MiB"}} {
		e.Process[1].Environment = set
		found, _ := rule(t, "gc").Check(e)
		if rows := fmt.Sprint(found[0].Evidence); strings.Contains(rows, "predicted with GOGC=40") || !strings.Contains(rows, "predicted with GOGC=off and GOMEMLIMIT=256MiB") {
			t.Errorf("%v: evidence %s, want nothing predicted with GOGC=40, whose heap of 56 MiB cannot be", set, rows)
		}
	}
	for limit, want := range map[string]bool{"41MiB": true, "45000000": true, "1GiB": false, "off": false, "": false, "9xB": false} {
		e.Process[1].Environment = map[string]string{"GOMEMLIMIT": limit}
		found, _ := rule(t, "gc").Check(e)
		if got := strings.Contains(found[0].Title, "GOMEMLIMIT"); got != want {
			t.Errorf("GOMEMLIMIT=%s: %q, want the limit blamed: %t", limit, found[0].Title, want)
		}
	}
}

// TestLiveHeap has samples say that more is live than the heap may grow to. That is
// chance: where little is live it tells nothing, and elsewhere the heap is full.
func TestLiveHeap(t *testing.T) {
	for _, tc := range []struct {
		live, next, want float64 // MiB
		limit            string
		full             bool
	}{
		{5, 4, 2, "", false},
		{950, 940, 940, "1000MiB", true},
		{940, 950, 940, "1000MiB", true},
		{45, 44, 44, "", false},
		{45, 44, 44, "1000MiB", false},
	} {
		e := service(alone(400, 400*tick, "runtime.gcDrain", "runtime.gcBgMarkWorker"))
		live := []cost.Stack{alone(1, tc.live*(1<<20), "main.main")}
		e.Live = [][]cost.Stack{live, live}
		e.Memory = []doctor.Memory{{}, {Cycles: 50, NextGC: tc.next * (1 << 20)}}
		e.Process = []proc.Facts{{}, {Environment: map[string]string{"GOMEMLIMIT": tc.limit}}}
		found, err := rule(t, "gc").Check(e)
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v: got %v, %v, want one finding", tc, found, err)
		}
		want := doctor.Row{What: "live heap, about", Value: tc.want * (1 << 20), Unit: "B"}.String()
		if rows := fmt.Sprint(found[0].Evidence); !strings.Contains(rows, want) || strings.Contains(found[0].Title, "GOMEMLIMIT") != tc.full {
			t.Errorf("%+v: %q with evidence %s\nwant %s in it", tc, found[0].Title, rows, want)
		}
	}
}

func TestClient(t *testing.T) {
	dial := func(n float64) cost.Stack {
		return alone(n, n*4096, "bufio.NewReaderSize", "net/http.(*Transport).dialConn", "net/http.(*Transport).dialConnFor")
	}
	for _, tc := range []struct {
		name  string
		dials float64
		size  float64
		want  string
	}{
		{"a connection each", requests, 4096, "warning"},
		{"one in a hundred", requests / 100, 4096, "cheap"},
		{"none", 0, 4096, "healthy"},
		{"small objects beside it", requests, 80, "healthy"},
	} {
		e := service(alone(100, 100*tick, "syscall.Syscall", "net/http.(*Transport).dialConn"))
		s := dial(tc.dials)
		s.Value = tc.dials * tc.size
		e.Allocs = []cost.Stack{s}
		if got := verdict(t, "client", e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
	// 1 % of the CPU or not, some 4 % of the requests dialled by 3 stacks: who knows.
	for dials, want := range map[float64]string{400: "cheap", 600: "uncertain"} {
		e := service(alone(100, 100*tick, "syscall.Syscall", "net/http.(*Transport).dialConn"))
		e.Allocs = []cost.Stack{dial(dials)}
		if got := verdict(t, "client", e); got != want {
			t.Errorf("%g dials: got %s, want %s", dials, got, want)
		}
	}
	// Where nobody counted the requests, a connection opened now and then is one of few.
	uncounted := service(alone(100, 100*tick, "syscall.Syscall", "net/http.(*Transport).dialConn"))
	uncounted.Window.Requests, uncounted.Allocs = 0, []cost.Stack{dial(128)}
	if got := verdict(t, "client", uncounted); got != "uncertain" {
		t.Errorf("requests not counted: got %s, want uncertain", got)
	}
	// Read loops that pile up mean that nobody closes the answers.
	e := service(alone(100, 100*tick, "syscall.Syscall", "net/http.(*Transport).dialConn"))
	e.Allocs = []cost.Stack{dial(requests)}
	for _, n := range []float64{10, 100, 200} {
		e.Counts = append(e.Counts, doctor.Count{Goroutines: []cost.Stack{alone(n, n, "net/http.(*persistConn).readLoop")}})
	}
	found, err := rule(t, "client").Check(e)
	// 10,000 buffers of 4 KiB are 78 stacks of 512 KiB: 1 ± 1.96/√78.
	if len(found) == 1 && !strings.Contains(found[0].Title, "dials 1 [0.778, 1.22] times per request") {
		t.Errorf("title %q, want its interval, 1 [0.778, 1.22]", found[0].Title)
	}
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Remedy, "close every answer's body") {
		t.Errorf("got %v, %v, want a finding that has bodies closed", found, err)
	}
	// As many Transports as connections have nothing to use again. A service that
	// uses connections again has made its Transport before.
	e.Allocs = append(e.Allocs, within(6*requests, 6*requests*100, "net/http.(*Transport).onceSetNextProtoDefaults"))
	found, err = rule(t, "client").Check(e)
	if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].Remedy, "make one Transport") {
		t.Errorf("got %v, %v, want a finding that has one Transport made", found, err)
	}
}

// TestClientSockets wants the peers told to which most connections are in time
// wait, and that a network namespace shared with others is not the service's.
func TestClientSockets(t *testing.T) {
	e := service(alone(100, 100*tick, "syscall.Syscall", "net/http.(*Transport).dialConn"))
	e.Allocs = []cost.Stack{alone(requests, requests*4096, "bufio.NewReaderSize", "net/http.(*Transport).dialConn")}
	e.Process = []proc.Facts{
		{Dials: 100, TimeWait: map[string]int{"10.0.0.2:443": 900, "10.0.0.3:80": 900}},
		{Dials: 5100, TimeWait: map[string]int{"10.0.0.2:443": 5000, "10.0.0.3:80": 950, "10.0.0.4:80": 20, "10.0.0.5:80": 10}},
	}
	found, err := rule(t, "client").Check(e)
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want a finding", found, err)
	}
	var got []string
	for _, r := range found[0].Evidence {
		if r.Value > 0 && strings.Contains(r.What, "network namespace") {
			got = append(got, fmt.Sprintf("%s: %g", r.What, r.Value))
		}
	}
	want := []string{
		"connections of its network namespace in time wait, to 10.0.0.2:443, and growing: 5000",
		"connections of its network namespace in time wait, to 10.0.0.3:80: 950",
		"connections of its network namespace in time wait, to 10.0.0.4:80, and growing: 20",
		"connections opened in its network namespace meanwhile, by it and all others there: 5000",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimeouts(t *testing.T) {
	for _, tc := range []struct {
		probe doctor.Probe
		want  string
	}{
		{doctor.Probe{Waited: 5 * time.Second, Closed: true}, "healthy"},
		{doctor.Probe{Waited: 10*time.Second + 3*time.Millisecond, Closed: true}, "healthy"}, // a time-out of 10 s
		{doctor.Probe{Waited: 11 * time.Second, Closed: true}, "serious"},
		{doctor.Probe{Waited: 10 * time.Second}, "serious"},
		{doctor.Probe{Waited: 20 * time.Second, Closed: true}, "serious"},
		{doctor.Probe{Waited: 3 * time.Second}, "needs a probe with half a header"},
		{doctor.Probe{Waited: 50 * time.Millisecond, Closed: true}, "warning"},
	} {
		e := service()
		e.Probe = &tc.probe
		if got := verdict(t, "timeouts", e); got != tc.want {
			t.Errorf("%+v: got %s, want %s", tc.probe, got, tc.want)
		}
		if found, _ := rule(t, "timeouts").Check(e); tc.probe.Closed && len(found) > 0 && strings.Contains(found[0].Title, "without bound") {
			t.Errorf("%+v: title %q of a server that gave up", tc.probe, found[0].Title)
		}
	}
}

// TestQuota: a process that its quota holds back is found once, by the rule for its cause.
func TestQuota(t *testing.T) {
	built := func(version string, more ...string) *proc.Build {
		b := &proc.Build{Go: version, Settings: map[string]string{}, Requires: more}
		return b
	}
	old := built("go1.26.8")
	old.Settings["DefaultGODEBUG"] = "containermaxprocs=0"
	for _, tc := range []struct {
		name      string
		cpus      float64
		throttled int64
		env       map[string]string
		build     *proc.Build
		want      string
		throttles string // what the rule throttled finds
	}{
		{"by the environment", 0.5, 50, map[string]string{"GOMAXPROCS": "8"}, built("go1.26.8"), "warning", "healthy"},
		{"not held back", 0.5, 1, map[string]string{"GOMAXPROCS": "8"}, built("go1.26.8"), "healthy", "healthy"},
		{"follows the quota", 0.5, 50, nil, built("go1.26.8"), "healthy", "warning"},
		{"follows it, release candidate", 0.5, 50, nil, built("go1.25rc1"), "healthy", "warning"},
		{"follows it, under development", 0.5, 50, nil, built("go1.27-devel_0123456789 Mon Nov 23 10:00:00 2026 +0000"), "healthy", "warning"},
		{"too old to", 0.5, 50, nil, built("go1.24.3"), "warning", "healthy"},
		{"told not to", 2, 50, nil, old, "warning", "healthy"},
		{"told to after all", 2, 50, map[string]string{"GODEBUG": "containermaxprocs=1"}, old, "healthy", "warning"},
		{"automaxprocs", 0.5, 50, nil, built("go1.24.3", "go.uber.org/automaxprocs"), "healthy", "warning"},
		{"enough quota", 7.5, 50, map[string]string{"GOMAXPROCS": "8"}, nil, "healthy", "warning"},
		{"no quota", 0, 0, nil, nil, "needs a CPU quota", "needs a CPU quota"},
	} {
		e := service()
		at := time.Now()
		e.Process = []proc.Facts{
			{At: at, CPUs: 16, Environment: tc.env, Build: tc.build, Quota: proc.Quota{CPUs: tc.cpus}},
			{At: at.Add(seconds * time.Second), CPUs: 16, Environment: tc.env, Build: tc.build,
				Quota: proc.Quota{CPUs: tc.cpus, Periods: 100, Throttled: tc.throttled, Waited: time.Second}},
		}
		if got := verdict(t, "procs", e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
		if got := verdict(t, "throttled", e); got != tc.throttles {
			t.Errorf("%s: throttled got %s, want %s", tc.name, got, tc.throttles)
		}
	}
}

// TestEscapes joins the compiler's word with measured bytes: by file and line, and
// only where there are any.
func TestEscapes(t *testing.T) {
	at := cost.Frame{Func: handler.Func, File: "example.org/shop/cart.go", Line: 14}
	e := service(cost.Stack{Count: 100, Value: 100 * tick, Frames: []cost.Frame{{Func: "runtime.mallocgc"}, {Func: "runtime.newobject"}, at, server, conn}})
	e.Allocs = []cost.Stack{
		{Count: requests, Value: requests * 8192, Frames: []cost.Frame{at, server, conn}},
		{Count: requests, Value: requests * 8192, Frames: []cost.Frame{handler, server, conn}},
	}
	if got, want := verdict(t, "escapes", e), "needs the program's source"; got != want {
		t.Errorf("without the source: got %s, want %s", got, want)
	}
	e.Decisions = []compiler.Decision{
		{Kind: compiler.Escape, File: "/home/me/shop/cart.go", Line: 14, Text: "moved to heap: cfg"},
		{Kind: compiler.Escape, File: "/home/me/other/cart.go", Line: 14, Text: "moved to heap: x"},
		{Kind: compiler.Escape, File: "/home/me/shop/cart.go", Line: 99, Text: "moved to heap: y"},
		{Kind: compiler.Defer, File: "/home/me/shop/cart.go", Line: 14, Text: "heap-allocated defer"},
	}
	found, err := rule(t, "escapes").Check(e)
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want one finding", found, err)
	}
	f := found[0]
	if f.Severity != doctor.Warning || f.Title != "moved to heap: cfg: 8.00 KiB per request" || f.Price.Value != 100*tick/requests {
		t.Errorf("got %s %q for %g ns, want a warning of cfg, 8.00 KiB, %g ns", f.Severity, f.Title, f.Price.Value, 100*tick/requests)
	}
	e.Decisions = append(e.Decisions, compiler.Decision{Kind: compiler.Escape, File: "/home/me/shop/cart.go", Line: 14, Text: "make([]byte, n) escapes to heap"})
	if found, err = rule(t, "escapes").Check(e); err != nil || len(found) != 1 || found[0].Title != "shop/cart.go:14, where 2 values escape to heap: 8.00 KiB per request" {
		t.Errorf("two values of one line: got %+v, %v, want the line", found, err)
	}
	e.CPU = service().CPU
	if got, want := verdict(t, "escapes", e), "healthy"; got != want && got != "cheap" {
		t.Errorf("bytes that cost nothing: got %s, want %s or cheap", got, want)
	}
}

// TestDefers names the line where the compiler keeps the call on the heap.
func TestDefers(t *testing.T) {
	e := service(busy(100, "runtime.deferproc"))
	e.Decisions = []compiler.Decision{{Kind: compiler.Defer, File: "/home/me/shop/cart.go", Line: 30}, {Kind: compiler.Defer, File: "/home/me/shop/cold.go", Line: 1}}
	found, err := rule(t, "defers").Check(e)
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v, want one finding", found, err)
	}
	rows := fmt.Sprint(found[0].Evidence)
	if !strings.Contains(rows, "shop/cart.go:30") || strings.Contains(rows, "cold.go") {
		t.Errorf("evidence %s, want cart.go, which ran, and not cold.go", rows)
	}
}

// TestCompressedAgain has gzip's output show whether it was given what gets smaller.
func TestCompressedAgain(t *testing.T) {
	const gzip, write = "compress/gzip.(*Writer).Write", "compress/flate.(*huffmanBitWriter).write"
	searching := func(n float64, by ...string) cost.Stack {
		return busy(n, append([]string{"compress/flate.(*deflateFast).encode", gzip}, by...)...)
	}
	sending := func(n float64, how string, by ...string) cost.Stack {
		return busy(n, append([]string{"net/http.(*response).Write", write, "compress/flate.(*huffmanBitWriter)." + how, gzip}, by...)...)
	}
	const text, picture = "example.org/shop.page", "example.org/shop.picture"
	for _, tc := range []struct {
		name string
		cpu  []cost.Stack
		want string
	}{
		{"text", []cost.Stack{searching(200), sending(50, "writeTokens")}, "healthy"},
		{"pictures", []cost.Stack{searching(200), sending(100, "writeBytes")}, "warning"},
		{"most of it", []cost.Stack{searching(200), sending(40, "writeTokens"), sending(60, "writeBytes")}, "warning"},
		{"a block now and then", []cost.Stack{searching(200), sending(90, "writeTokens"), sending(10, "writeBytes")}, "healthy"},
		{"pictures beside text", []cost.Stack{searching(300, text), sending(90, "writeTokens", text), searching(100, picture), sending(9, "writeBytes", picture)}, "warning"},
		{"few pictures", []cost.Stack{searching(300, text), sending(90, "writeTokens", text), searching(5, picture), sending(9, "writeBytes", picture)}, "cheap"},
		{"sent, and nothing else", []cost.Stack{sending(100, "writeBytes")}, "healthy"},
	} {
		if got := verdict(t, "compression", service(tc.cpu...)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
	e := service(searching(300, text), sending(90, "writeTokens", text), searching(100, picture), sending(9, "writeBytes", picture))
	found, err := rule(t, "compression").Check(e)
	if err != nil || len(found) != 1 || found[0].Price.Share != 0.1 || !strings.Contains(fmt.Sprint(found[0].Evidence), "shop.picture") {
		t.Errorf("pictures beside text: got %+v, %v, want 0.1 of the CPU, of shop.picture", found, err)
	}
}

// TestDeadline wants a limit seen wherever it is set, and none missed for want of samples.
func TestDeadline(t *testing.T) {
	sent := within(12*5461, 12*(512<<10), "context.withCancel", "context.WithCancelCause", "net/http.(*Transport).roundTrip", "net/http.(*Client).do")
	few := within(5461, 512<<10, "context.withCancel", "context.WithCancelCause", "net/http.(*Transport).roundTrip", "net/http.(*Client).do")
	for _, tc := range []struct {
		name   string
		allocs []cost.Stack
		want   string
	}{
		{"nothing sent", nil, "healthy"},
		{"no limit", []cost.Stack{sent}, "warning"},
		{"too few to tell", []cost.Stack{few}, "needs an allocation profile"},
		{"few, but with a limit", []cost.Stack{few, within(1, 1<<19, "context.WithDeadlineCause", "context.WithDeadline", "net/http.setRequestCancel")}, "healthy"},
		{"the client's limit", []cost.Stack{sent, within(1, 1<<19, "context.WithDeadlineCause", "context.WithDeadline", "net/http.setRequestCancel")}, "healthy"},
		{"the handler's", []cost.Stack{sent, within(1, 1<<19, "context.WithDeadlineCause", "context.WithTimeout")}, "healthy"},
		{"the transport's", []cost.Stack{sent, within(1, 1<<19, "time.newTimer", "time.NewTimer", "net/http.(*persistConn).roundTrip")}, "healthy"},
		{"a limit of those who look", []cost.Stack{sent, within(1, 1<<19, "context.WithDeadline", "net/http/pprof.Profile")}, "warning"},
	} {
		e := service()
		e.Allocs = append(e.Allocs, tc.allocs...)
		if got := verdict(t, "deadline", e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestBodies(t *testing.T) {
	const read, all = "net/http.(*body).Read", "io.ReadAll"
	waited := service()
	waited.Waits = append(waited.Waits, waits(cost.Network, 1, 1e6, "net.(*conn).Read", read, all))
	bounded := service()
	bounded.Waits = append(bounded.Waits, waits(cost.Network, 1, 1e6, "net.(*conn).Read", read, "net/http.(*maxBytesReader).Read", all))
	for _, tc := range []struct {
		name string
		e    *doctor.Evidence
		want string
	}{
		{"none came", service(), "needs requests with bodies"},
		{"seen once, running", service(busy(1, read, all)), "warning"},
		{"seen once, waiting", waited, "warning"},
		{"bounded", bounded, "healthy"},
		{"bounded, and one that is not", service(busy(5, read, "net/http.(*maxBytesReader).Read", all), busy(1, read, "encoding/json.(*Decoder).Decode")), "warning"},
		{"copied", service(busy(5, read, "io.Copy")), "healthy"},
	} {
		if got := verdict(t, "bodies", tc.e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestLabels has memory of series grow by more or less than chance.
func TestLabels(t *testing.T) {
	series := func(mib float64) cost.Stack {
		return within(mib*1000, mib*(1<<20), "internal/sync.(*HashTrieMap).LoadOrStore", "expvar.(*Map).Add")
	}
	for _, tc := range []struct {
		name          string
		before, after float64 // MiB
		want          string
	}{
		{"none", 0, 0, "healthy"},
		{"as many", 20, 20, "healthy"},
		{"fewer", 20, 10, "healthy"},
		{"more, by chance", 20, 25, "healthy"}, // ± 1.96 √(45 × 0.5) = 9.3
		{"a few of the start", 0, 1, "healthy"},
		{"perhaps", 0, 3, "uncertain"}, // ± 2.4
		{"many", 0, 10, "warning"},     // ± 4.4
		{"many, beside as many", 100, 130, "warning"},
	} {
		e := service()
		e.Live = [][]cost.Stack{{series(tc.before)}, {series(tc.after), alone(1, 8<<20, "main.main")}}
		if got := verdict(t, "labels", e); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
		// Other memory may grow as it likes.
		e.Live = [][]cost.Stack{{within(1, tc.before*(1<<20), "example.org/shop.cache")}, {within(1, tc.after*(1<<20), "example.org/shop.cache")}}
		if got := verdict(t, "labels", e); got != "healthy" {
			t.Errorf("%s, of a cache: got %s, want healthy", tc.name, got)
		}
	}
}
