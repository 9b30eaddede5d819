package ratelimit_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
)

func Example() {
	limit, err := ratelimit.New(ratelimit.Options{Law: ratelimit.GCRA{Rate: 1, Per: time.Minute, Burst: 2}})
	if err != nil {
		panic(err)
	}
	h := limit.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 ""
	// 200 ""
	// 429 "60"
}

func limiter(t testing.TB, o ratelimit.Options) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func from(addr string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = addr
	return r
}

// TestGCRA follows one client by a clock of the test's.
func TestGCRA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, ratelimit.Options{Law: ratelimit.GCRA{Rate: 10, Burst: 3}})
		r := from("192.0.2.1:1")
		take := func(n uint32, allowed bool, remaining int, retry time.Duration) {
			t.Helper()
			got := l.Take(r, n)
			if got.Allowed != allowed || got.Remaining != remaining || got.Retry != retry {
				t.Errorf("take %d: %+v, want %t, %d remaining, retry in %s", n, got, allowed, remaining, retry)
			}
		}
		take(1, true, 2, 0)
		take(1, true, 1, 0)
		take(1, true, 0, 0)
		take(1, false, 0, 100*time.Millisecond)
		time.Sleep(40 * time.Millisecond)
		take(1, false, 0, 60*time.Millisecond)
		time.Sleep(60 * time.Millisecond)
		take(1, true, 0, 0)
		time.Sleep(time.Second)
		take(2, true, 1, 0)
		take(2, false, 1, 100*time.Millisecond)
		take(4, false, 1, -1) // more than the burst: never
		if l.Refused() != 4 {
			t.Errorf("%d refused", l.Refused())
		}
	})
}

// TestCostly takes more at once than any limit has: also by a law so slow that their time is
// more than 64 bits of nanoseconds.
func TestCostly(t *testing.T) {
	for _, law := range []ratelimit.Law{ratelimit.GCRA{Rate: 10, Per: time.Minute}, ratelimit.GCRA{Rate: 1, Per: 365 * 24 * time.Hour},
		ratelimit.Window{Limit: 10}, ratelimit.Window{Limit: 1, Length: 365 * 24 * time.Hour}} {
		l := limiter(t, ratelimit.Options{Law: law})
		r := from("192.0.2.1:1")
		for _, n := range []uint32{11, 400, 2_000_000_000, math.MaxUint32} {
			if got := l.Take(r, n); got.Allowed || got.Retry != -1 {
				t.Errorf("%s, %d at once: %+v, want never", law, n, got)
			}
		}
		if !l.Take(r, 1).Allowed {
			t.Errorf("%s: what is never allowed has used the limit up", law)
		}
	}
}

// TestWindow counts what passes in any length of a window, for clients that try at
// once, evenly, and at the turn of windows.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, ratelimit.Options{Law: ratelimit.Window{Limit: 10, Length: time.Second}})
		r := from("192.0.2.1:1")
		passed := func(tries int) (n int) {
			for range tries {
				if l.Take(r, 1).Allowed {
					n++
				}
			}
			return n
		}
		if n := passed(20); n != 10 {
			t.Errorf("at once: %d passed", n)
		}
		time.Sleep(1500 * time.Millisecond) // half of the ten still count
		if n := passed(20); n != 5 {
			t.Errorf("half a window later: %d passed", n)
		}
		time.Sleep(10 * time.Second)
		if n := passed(20); n != 10 {
			t.Errorf("after a rest: %d passed", n)
		}
		res := l.Take(r, 1)
		time.Sleep(res.Retry - 2)
		if n := passed(1); n != 0 {
			t.Error("passed before Retry was over")
		}
		time.Sleep(2 * time.Nanosecond)
		if n := passed(1); n != 1 {
			t.Error("refused when Retry was over")
		}
		even := 0
		for range 1000 { // 20 a second
			time.Sleep(50 * time.Millisecond)
			even += passed(1)
		}
		if even < 430 || even > 510 {
			t.Errorf("evenly at twice the limit, %d of 1000 passed in 50 s, want 500 at most and nearly so", even)
		}
	})
}

// TestLaws holds Retry and Reset of both laws to what happens then.
func TestLaws(t *testing.T) {
	for _, law := range []ratelimit.Law{ratelimit.GCRA{Rate: 7, Per: time.Minute, Burst: 3}, ratelimit.Window{Limit: 7}} {
		synctest.Test(t, func(t *testing.T) {
			l := limiter(t, ratelimit.Options{Law: law})
			r := from("192.0.2.1:1")
			for i := range 200 {
				time.Sleep(time.Duration(i*i) * time.Millisecond)
				res := l.Take(r, 1)
				if !res.Allowed {
					time.Sleep(res.Retry)
					if res = l.Take(r, 1); !res.Allowed {
						t.Fatalf("%s: refused after Retry, again for %s", law, res.Retry)
					}
				}
				for range res.Remaining {
					if !l.Take(r, 1).Allowed {
						t.Fatalf("%s: fewer than the %d that remained passed", law, res.Remaining)
					}
				}
				if res := l.Take(r, 1); res.Allowed {
					t.Fatalf("%s: more passed than remained", law)
				}
			}
		})
	}
}

func TestKeys(t *testing.T) {
	request := func(addr, key, path string) *http.Request {
		r := from(addr)
		r.Header.Set("X-Key", key)
		r.Host = key + ".example"
		r.Pattern = path
		return r
	}
	a, b := request("192.0.2.1:1", "x", "/a"), request("192.0.2.2:1", "y", "/b")
	for name, c := range map[string]struct {
		key      ratelimit.Key
		a, b     *http.Request
		together bool
	}{
		"addresses":              {ratelimit.ByAddress(), a, b, false},
		"one address, two ports": {ratelimit.ByAddress(), from("192.0.2.1:1"), from("192.0.2.1:2"), true},
		"one net of IPv6":        {ratelimit.ByAddress(), from("[2001:db8::1]:1"), from("[2001:db8::ffff:2]:1"), true},
		"two nets of IPv6":       {ratelimit.ByAddress(), from("[2001:db8:0:1::1]:1"), from("[2001:db8:0:2::1]:1"), false},
		"mapped IPv4":            {ratelimit.ByAddress(), from("[::ffff:192.0.2.1]:1"), from("192.0.2.1:1"), true},
		"sockets":                {ratelimit.ByAddress(), from("@"), from(""), true},
		"headers":                {ratelimit.ByHeader("x-key"), a, b, false},
		"without headers":        {ratelimit.ByHeader("other"), a, b, true},
		"hosts":                  {ratelimit.ByHeader("host"), a, b, false},
		"routes":                 {ratelimit.ByRoute(), a, b, false},
		"method":                 {ratelimit.ByString(func(r *http.Request) string { return r.Method }), a, b, true},
		"both, one differs":      {ratelimit.Both(ratelimit.ByRoute(), ratelimit.ByString(func(r *http.Request) string { return r.Method })), a, b, false},
		"both, none differs":     {ratelimit.Both(ratelimit.ByRoute(), ratelimit.ByAddress()), a, a, true},
	} {
		l := limiter(t, ratelimit.Options{Key: c.key, Law: ratelimit.GCRA{Rate: 1, Per: time.Hour}})
		if !l.Take(c.a, 1).Allowed {
			t.Errorf("%s: the first request is refused", name)
		}
		if together := !l.Take(c.b, 1).Allowed; together != c.together {
			t.Errorf("%s: counted together %t, want %t", name, together, c.together)
		}
	}
}

func TestAnswers(t *testing.T) {
	l := limiter(t, ratelimit.Options{Law: ratelimit.Window{Limit: 2}, Announce: true})
	h := chain.Must(chain.New(clientaddr.New(clientaddr.Options{}), l.Middleware).
		Then(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {})))
	for i, want := range []string{`200 "default";q=2;w=60 "default";r=1`, `200 "default";q=2;w=60 "default";r=0`, `429 "default";q=2;w=60 "default";r=0`} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, from("192.0.2.1:1"))
		got := strconv.Itoa(w.Code) + " " + w.Header().Get("RateLimit-Policy") + " " + w.Header().Get("RateLimit")
		if !strings.HasPrefix(got, want+";t=") {
			t.Errorf("answer %d: %s, want %s", i, got, want)
		}
		_, reset, _ := strings.Cut(got, ";t=")
		if w.Code == 429 && (w.Header().Get("Retry-After") != reset || reset < "1" || len(reset) > 3) {
			t.Errorf("Retry-After %q, want the %s s of RateLimit", w.Header().Get("Retry-After"), reset)
		}
	}
}

// TestRoom has many more clients than room: memory stays, the newest are counted, and
// what was forgotten is told.
func TestRoom(t *testing.T) {
	l := limiter(t, ratelimit.Options{Keys: 64, Law: ratelimit.GCRA{Rate: 1, Per: time.Hour}})
	for i := range 10_000 {
		r := from(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250))
		if !l.Take(r, 1).Allowed {
			t.Fatalf("client %d is refused at once", i)
		}
		if l.Take(r, 1).Allowed {
			t.Fatalf("client %d is not counted", i)
		}
	}
	if l.Evicted() < 10_000-256 {
		t.Errorf("%d evicted", l.Evicted())
	}
	spacious := limiter(t, ratelimit.Options{Keys: 10_000, Law: ratelimit.GCRA{Rate: 1, Per: time.Hour}})
	for i := range 10_000 {
		spacious.Take(from(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250)), 1)
	}
	if n := spacious.Evicted(); n > 100 {
		t.Errorf("%d of 10,000 evicted with room for all", n)
	}
}

// TestConcurrent has many goroutines ask for few clients: exactly the limit passes.
func TestConcurrent(t *testing.T) {
	l := limiter(t, ratelimit.Options{Law: ratelimit.GCRA{Rate: 100, Per: 24 * time.Hour}})
	var passed [4]atomic.Int64
	var all sync.WaitGroup
	for g := range 50 {
		all.Go(func() {
			for i := range 200 {
				c := (g + i) % len(passed)
				if l.Take(from(fmt.Sprintf("192.0.2.%d:1", c)), 1).Allowed {
					passed[c].Add(1)
				}
			}
		})
	}
	all.Wait()
	for c := range passed {
		if n := passed[c].Load(); n != 100 {
			t.Errorf("client %d: %d passed, want 100", c, n)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []ratelimit.Options{
		{}, {Law: ratelimit.GCRA{}}, {Law: ratelimit.GCRA{Rate: -1}}, {Law: ratelimit.Window{}},
		{Law: ratelimit.Window{Limit: 1, Length: time.Nanosecond}}, {Law: ratelimit.GCRA{Rate: 1, Burst: -1}},
		{Law: ratelimit.GCRA{Rate: 1, Per: 24 * time.Hour, Burst: 1 << 29}}, {Law: ratelimit.Window{Limit: 1}, Keys: -1},
	} {
		if _, err := ratelimit.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// TestAllocs holds the middleware to no allocation where it lets pass.
func TestAllocs(t *testing.T) {
	l := limiter(t, ratelimit.Options{Law: ratelimit.GCRA{Rate: 1 << 30}})
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, r := httptest.NewRecorder(), from("[2001:db8::1]:1")
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// BenchmarkKeys takes requests of a million clients in turn.
func BenchmarkKeys(b *testing.B) {
	l := limiter(b, ratelimit.Options{Keys: 1_000_000, Law: ratelimit.GCRA{Rate: 1 << 30},
		Key: ratelimit.ByHeader("X-Key")})
	keys := make([]string, 1_000_000)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	r := from("192.0.2.1:1")
	value := []string{""}
	r.Header["X-Key"] = value
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		value[0] = keys[i]
		if i += 7919; i >= len(keys) {
			i -= len(keys)
		}
		l.Take(r, 1)
	}
}

// TestKeyPanics leaves nothing locked.
func TestKeyPanics(t *testing.T) {
	broken := true
	l := limiter(t, ratelimit.Options{Law: ratelimit.GCRA{Rate: 1, Per: time.Hour}, Key: ratelimit.ByString(func(*http.Request) string {
		if broken {
			panic("broken")
		}
		return "ann"
	})})
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	serve := func() (w *httptest.ResponseRecorder, p any) {
		defer func() { p = recover() }()
		w = httptest.NewRecorder()
		h.ServeHTTP(w, from("192.0.2.1:1"))
		return w, nil
	}
	if _, p := serve(); p != "broken" {
		t.Errorf("the panic is %v", p)
	}
	broken = false
	for _, want := range []int{200, 429} {
		if w, _ := serve(); w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
}

// TestLateArrival has a request that came in the window before get to the limit after others
// of this one: it takes back nothing of what they used.
func TestLateArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, ratelimit.Options{Law: ratelimit.Window{Limit: 3, Length: time.Minute}})
		time.Sleep(30 * time.Second)
		w, rec := chain.Record(httptest.NewRecorder())
		rec.Begun()
		time.Sleep(40 * time.Second)
		r := from("192.0.2.1:1")
		for range 3 {
			l.Take(r, 1)
		}
		l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if rec.Status() != 429 {
			t.Errorf("the late one gets %d", rec.Status())
		}
		if l.Take(r, 1).Allowed {
			t.Error("what the late one found was forgotten")
		}
	})
}

// TestOvertaken has a request wait on its way for so long that others of its client, which came
// later and keep to the limit, are counted first: it passes, too.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, ratelimit.Options{Law: ratelimit.GCRA{Rate: 10, Burst: 2}})
		w, rec := chain.Record(httptest.NewRecorder())
		rec.Begun()
		r := from("192.0.2.1:1")
		for i := range 8 {
			time.Sleep(125 * time.Millisecond)
			if !l.Take(r, 1).Allowed {
				t.Errorf("request %d is refused, at eight a second", i)
			}
		}
		h := l.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		time.Sleep(50 * time.Millisecond)
		h.ServeHTTP(w, r)
		if rec.Status() != http.StatusOK || l.Refused() != 0 {
			t.Errorf("the one that waited gets %d, and %d were refused", rec.Status(), l.Refused())
		}
		w, rec = chain.Record(httptest.NewRecorder())
		if h.ServeHTTP(w, r); rec.Status() != http.StatusTooManyRequests || l.Refused() != 1 {
			t.Errorf("one too many gets %d, and %d were refused", rec.Status(), l.Refused())
		}
	})
}

// BenchmarkRequest is a request that passes, in a chain: a layer outside has asked when it
// came.
func BenchmarkRequest(b *testing.B) {
	for _, law := range []ratelimit.Law{ratelimit.GCRA{Rate: 1 << 30}, ratelimit.Window{Limit: 1 << 30}} {
		b.Run(fmt.Sprintf("%T", law), func(b *testing.B) {
			h := limiter(b, ratelimit.Options{Law: law}).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			w, rec := chain.Record(httptest.NewRecorder())
			rec.Begun()
			r := from("192.0.2.1:1")
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}
