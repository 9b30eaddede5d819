package pprof_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	netpprof "net/http/pprof"
	"runtime"
	rpprof "runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

var sink atomic.Uint64

//go:noinline
func burn() {
	x := uint64(1)
	for range 20_000 {
		x ^= x << 13
		x ^= x >> 7
	}
	sink.Store(x)
}

// Spin and Alloc are middlewares with one cost each.
func Spin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		burn()
		next.ServeHTTP(w, r)
	})
}

func Alloc(next http.Handler) http.Handler {
	var kept atomic.Pointer[[]byte]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 64<<10)
		kept.Store(&b)
		next.ServeHTTP(w, r)
	})
}

// service runs Spin and Alloc in a real server, and requests on it until the
// test ends.
func service(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", Spin(Alloc(http.NotFoundHandler())))
	mux.HandleFunc("/debug/pprof/profile", netpprof.Profile)
	mux.Handle("/debug/pprof/allocs", netpprof.Handler("allocs"))
	for _, name := range []string{"mutex", "heap", "goroutine"} {
		mux.Handle("/debug/pprof/"+name, netpprof.Handler(name))
	}
	s := httptest.NewServer(mux)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			res, err := s.Client().Get(s.URL)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		s.Close()
	})
	return s
}

// TestService profiles a real server: what was put into a middleware must be
// charged to it, by name and place.
func TestService(t *testing.T) {
	s := service(t)
	find, err := pprof.Find(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	var cpu *pprof.Profile
	var table cost.Table
	var spin *cost.Row
	for d := 2 * time.Second; d <= 16*time.Second; d *= 2 { // longer if the machine is busy
		if cpu, err = find.CPU(context.Background(), d); err != nil {
			t.Fatal(err)
		}
		table = cost.Table{}
		for i := range cpu.Stacks {
			table.Add(&cpu.Stacks[i])
		}
		const enough = 10
		if spin = rowOf(table.Rows(), "pprof.Spin"); spin != nil && spin.Self.Count >= enough {
			break
		}
	}
	if spin == nil {
		t.Fatalf("no row for the spinning middleware in %v", table.Rows())
	}
	if spin.Owner.Kind != cost.Middleware || !strings.HasPrefix(spin.Owner.Where(), "pprof/pprof_test.go:") {
		t.Errorf("the spinning middleware is a %s at %s, want a middleware in this file", spin.Owner.Kind, spin.Owner.Where())
	}
	// All that it does is burn.
	if own := spin.Causes[cost.Own].Value; own < spin.Self.Value*0.8 {
		t.Errorf("of %g ns %g are its own, want nearly all", spin.Self.Value, own)
	}
	if cpu.Duration < time.Second {
		t.Errorf("profile of %s, want about 2 s", cpu.Duration)
	}

	allocs, err := find.Allocs(context.Background(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var bytes cost.Table
	for i := range allocs.Stacks {
		bytes.Add(&allocs.Stacks[i])
	}
	alloc := rowOf(bytes.Rows(), "pprof.Alloc")
	if alloc == nil {
		t.Fatalf("no row for the allocating middleware in %v", bytes.Rows())
	}
	// 64 KiB a request; all else, client included, is a few.
	if all := bytes.Sum().Value; alloc.Self.Value < all/2 {
		t.Errorf("the allocating middleware has %g of %g bytes, want most", alloc.Self.Value, all)
	}
}

func rowOf(rows []cost.Row, name string) *cost.Row {
	for i := range rows {
		if rows[i].Owner.Name == name {
			return &rows[i]
		}
	}
	return nil
}

func TestRefused(t *testing.T) {
	s := service(t)
	for _, tc := range []struct{ url, want string }{
		{s.URL + "/none", `answered 404 Not Found: "404 page not found"`},
		{strings.Replace(s.URL, "://", "://me:secret@", 1) + "/none", "http://me:xxxxx@"},
		{"http://127.0.0.1:1", "connection refused"},
	} {
		find, err := pprof.Find(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := find.CPU(context.Background(), time.Second); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("profile of %s: error %v, want %q in it", tc.url, err, tc.want)
		}
	}
	for _, raw := range []string{"", "http://", "ftp://me:secret@host", "http://%zz", "http://me:secret@host:port", "http://me:secret/x@host"} {
		if _, err := pprof.Find(raw); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Find(%q) = %v, want an error without the password", raw, err)
		}
	}
}

func TestFind(t *testing.T) {
	for raw, want := range map[string]string{
		"localhost:6060":                   "http://localhost:6060/debug/pprof/",
		"https://host/x?y":                 "https://host/x/",
		"http://host/debug/pprof":          "http://host/debug/pprof/",
		"http://host/inner/debug/pprof/#z": "http://host/inner/debug/pprof/",
		"http://me:secret@host":            "http://me:xxxxx@host/debug/pprof/",
	} {
		s, err := pprof.Find(raw)
		if err != nil || s.String() != want {
			t.Errorf("Find(%q) = %v, %v, want %s", raw, s, err, want)
		}
	}
}

// TestRead reads what runtime/pprof writes, and refuses what owners cannot be
// told from.
func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name string
		kind pprof.Kind
		err  error
	}{
		{"allocs", pprof.Allocs, nil},
		{"heap", pprof.Allocs, nil}, // has allocations, too
		{"goroutine", 0, pprof.ErrKind},
		{"mutex", 0, pprof.ErrKind},
	} {
		var b bytes.Buffer
		runtime.GC() // publishes what was allocated
		if err := rpprof.Lookup(tc.name).WriteTo(&b, 0); err != nil {
			t.Fatal(err)
		}
		p, err := pprof.Read(&b)
		if !errors.Is(err, tc.err) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.err)
		}
		if err == nil && (p.Kind != tc.kind || len(p.Stacks) == 0) {
			t.Errorf("%s: kind %s with %d stacks, want %s with some", tc.name, p.Kind, len(p.Stacks), tc.kind)
		}
	}
	if _, err := pprof.Read(strings.NewReader("no profile")); err == nil {
		t.Error("reading text succeeded, want an error")
	}
}

//go:noinline
func generic[T any](n int) []T { return make([]T, n) }

var cookies []http.Cookie

// TestTypeArguments names an instance of a generic function as the runtime and the
// other sources do. Its profile has the type arguments whole.
func TestTypeArguments(t *testing.T) {
	for range 64 {
		cookies = generic[http.Cookie](1 << 14) // 2.9 MiB, more than lies between two samples
	}
	runtime.GC()
	var b bytes.Buffer
	if err := rpprof.Lookup("allocs").WriteTo(&b, 0); err != nil {
		t.Fatal(err)
	}
	p, err := pprof.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, s := range p.Stacks {
		for _, f := range s.Frames {
			seen = seen || f.Func == "github.com/tarehq/tare/cost/pprof_test.generic[...]"
			if strings.Contains(f.Func, "go.shape") {
				t.Errorf("a frame is called %s", f.Func)
			}
		}
	}
	if !seen {
		t.Error("no frame is generic[...]")
	}
}

// TestLabel checks that a labelled profile has the same stacks and says of each
// what the table says.
func TestLabel(t *testing.T) {
	var in bytes.Buffer
	if err := rpprof.StartCPUProfile(&in); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
		burn()
	}
	rpprof.StopCPUProfile()
	p, err := pprof.Read(&in)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.Label(&out); err != nil {
		t.Fatal(err)
	}
	again, err := pprof.Read(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Stacks) != len(p.Stacks) {
		t.Errorf("%d stacks, want %d", len(again.Stacks), len(p.Stacks))
	}
}

// TestLabelLearns checks that a handler which only the profile as a whole tells is
// labelled as the table has it: behind echo's middlewares one is called as any function.
func TestLabelLearns(t *testing.T) {
	stack := func(inner ...string) cost.Stack {
		s := cost.Stack{Count: 1, Value: 1e7}
		for _, fn := range append(inner, "main.Auth.func1.1", "github.com/labstack/echo/v4.(*Echo).ServeHTTP", "net/http.serverHandler.ServeHTTP", "net/http.(*conn).serve") {
			s.Frames = append(s.Frames, cost.Frame{Func: fn, File: "/src/shop/shop.go", Decl: 1})
		}
		return s
	}
	stacks := []cost.Stack{stack("github.com/labstack/echo/v4.(*context).JSON", "main.users"), stack("main.sum", "main.users"), stack()}
	var out bytes.Buffer
	if err := pprof.New(pprof.CPU, time.Second, stacks).Label(&out); err != nil {
		t.Fatal(err)
	}
	labelled, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, s := range labelled.Sample {
		got[s.Label["owner"][0]] += float64(s.Value[1])
	}
	want := map[string]float64{}
	for _, it := range cost.NewBill(stacks, nil, cost.Window{}).Items {
		if it.Self > 0 {
			want[it.Owner] = it.Self
		}
	}
	if !maps.Equal(got, want) || want["shop.users"] != 2e7 {
		t.Errorf("labelled %v, in the table %v, want the same and shop.users for 2e7", got, want)
	}
}

// FuzzRead must not panic, whatever it is given.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := rpprof.Lookup("allocs").WriteTo(&b, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("samples/count cpu/nanoseconds"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := pprof.Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		var table cost.Table
		for i := range p.Stacks {
			table.Add(&p.Stacks[i])
		}
	})
}

func ExampleFind() {
	s, err := pprof.Find("localhost:6060")
	fmt.Println(s, err)
	// Output: http://localhost:6060/debug/pprof/ <nil>
}
