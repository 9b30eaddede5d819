package tracing

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

func prepared(t *testing.T, s Sampler) decider {
	t.Helper()
	d, err := s.prepare()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// count returns how many of so many requests a second are traced in each second.
func count(d decider, from, seconds, rate int) (n int) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range seconds * rate {
		now := time.Duration(from)*time.Second + time.Duration(i)*time.Second/time.Duration(rate)
		if d.decide(random.Uint64(), now) {
			n++
		}
	}
	return n
}

func TestFixed(t *testing.T) {
	for _, c := range []struct {
		share       float64
		least, most int
	}{{0, 0, 0}, {1, 100_000, 100_000}, {0.01, 880, 1120}, {0.5, 49_300, 50_700}} {
		if n := count(prepared(t, Fixed{c.share}), 0, 1, 100_000); n < c.least || n > c.most {
			t.Errorf("a share of %v: %d of 100,000", c.share, n)
		}
	}
}

func TestPerSecond(t *testing.T) {
	for _, rate := range []int{5, 1000, 100_000} {
		d := prepared(t, PerSecond{10})
		if n, want := count(d, 0, 10, rate), min(10*rate, 110); n < want-20 || n > want {
			t.Errorf("%d requests a second: %d traced in 10 s, want about %d", rate, n, want)
		}
	}
}

// TestAdaptive holds the stated law: the target at each load, and after a jump by a
// factor of ten at most ten times the target for a second.
func TestAdaptive(t *testing.T) {
	d := prepared(t, Adaptive{Target: 100})
	count(d, 0, 10, 10_000) // settles
	for _, c := range []struct{ from, rate, seconds, least, most int }{
		{10, 10_000, 20, 1700, 2300},
		{30, 100_000, 1, 800, 1200},
		{31, 100_000, 9, 900, 4000},
		{40, 100_000, 20, 1700, 2300},
		{60, 50, 12, 0, 600}, // the share grows to 1
		{72, 50, 10, 490, 500},
	} {
		if n := count(d, c.from, c.seconds, c.rate); n < c.least || n > c.most {
			t.Errorf("from second %d, %d requests a second for %d s: %d traced, want %d to %d", c.from, c.rate, c.seconds, n, c.least, c.most)
		}
	}
	least := prepared(t, Adaptive{Target: 1, Least: 0.1})
	count(least, 0, 5, 10_000)
	if n := count(least, 5, 1, 10_000); n < 850 || n > 1150 {
		t.Errorf("%d of 10,000 traced, want a tenth", n)
	}
}

// FuzzParents reads fields of clients: nothing that is read is invalid, and what is read
// of traceparent is what was there.
func FuzzParents(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1")
	f.Add("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "0")
	f.Fuzz(func(t *testing.T, parent, b3 string) {
		if s, ok := finish(parseTraceparent(parent)); ok {
			if !s.IsValid() || !strings.HasPrefix(parent[3:], s.TraceID().String()+"-"+s.SpanID().String()+"-") {
				t.Errorf("%q is read as %s %s", parent, s.TraceID(), s.SpanID())
			}
		}
		if s, ok := finish(parseB3(b3)); ok && (!s.IsValid() || !strings.Contains(b3, s.SpanID().String())) {
			t.Errorf("%q is read as %s %s", b3, s.TraceID(), s.SpanID())
		}
		_, _ = finish(readB3(http.Header{"X-B3-Traceid": {parent}, "X-B3-Spanid": {b3}}))
	})
}

// TestIdentity has all who ask for the identifiers of a request that is not traced get the
// same, and nobody's question by ID make them.
func TestIdentity(t *testing.T) {
	s := newUnsampled()
	r := httptest.NewRequest("GET", "/", nil)
	if id := ID(r.WithContext(trace.ContextWithSpan(r.Context(), s))); id != "" || s.context.Load() != nil {
		t.Errorf("got %q, want nothing, and none made", id)
	}
	var seen [8]trace.SpanContext
	var all sync.WaitGroup
	for i := range seen {
		all.Go(func() { seen[i] = s.SpanContext() })
	}
	all.Wait()
	for _, c := range seen {
		if !c.IsValid() || c.IsSampled() || !c.Equal(seen[0]) {
			t.Errorf("%v beside %v", c, seen[0])
		}
	}
	if other := newUnsampled().SpanContext(); other.TraceID() == seen[0].TraceID() {
		t.Error("two requests have one trace")
	}
}
