//go:build linux

package serve_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestSoak sends a mix of all that clients do, good and bad, to servers safe and
// reusing, plain and by TLS, and verifies each answer. Goroutines and heap must
// be no more after the last quarter than after the first, nor descriptors.
// TARE_SOAK is the number of requests, 20,000 if it is not set. TARE_SOAK_MINUTES has it go on
// for so long instead, with TARE_SOAK_RATE requests a second, 2,000 if that is not set, tell what
// the process holds each minute, and at the end what of that still grows.
func TestSoak(t *testing.T) {
	const visitors = 32
	total, minutes, rate := number(t, "TARE_SOAK", 20000), number(t, "TARE_SOAK_MINUTES", 0), number(t, "TARE_SOAK_RATE", 2000)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newSoak(t)
	begin := time.Now()
	if minutes > 0 {
		s.pace = visitors * time.Second / time.Duration(max(rate, 1))
		defer s.watch(begin, time.Duration(minutes)*time.Minute)()
	}
	var first, last flatness
	for quarter := range uint64(4) {
		s.left.Store(int64(total / 4))
		s.until = begin.Add(time.Duration(minutes) * time.Minute * time.Duration(quarter+1) / 4)
		var all sync.WaitGroup
		for i := range uint64(visitors) {
			v := &visitor{soak: s, Rand: rand.New(rand.NewPCG(seed, quarter*visitors+i))}
			all.Go(v.visitAll)
		}
		all.Wait()
		if t.Failed() {
			return
		}
		last = s.rest(t)
		t.Logf("after quarter %d: %v", quarter+1, last)
		if quarter == 0 {
			first = last
		}
	}
	s.report(t, time.Since(begin))
	if last.goroutines > first.goroutines+4 {
		t.Errorf("%d goroutines at the end, %d after a quarter", last.goroutines, first.goroutines)
	}
	if last.descriptors > first.descriptors+4 {
		t.Errorf("%d descriptors at the end, %d after a quarter", last.descriptors, first.descriptors)
	}
	if last.heap > first.heap*5/4+(2<<20) {
		t.Errorf("%d bytes of heap at the end, %d after a quarter", last.heap, first.heap)
	}
}

// soak is the servers and what is counted over all visitors.
type soak struct {
	t     *testing.T
	forts []*fort
	left  atomic.Int64  // requests to be sent, if there is no pace
	pace  time.Duration // from one request of a visitor to its next; zero: as fast as it goes
	until time.Time     // with a pace: when the visits end
	kinds []visit
	done  []atomic.Int64 // requests by kind
	kept  keepsakes
	late  sync.WaitGroup // goroutines that handlers left
}

func newSoak(t *testing.T) *soak {
	s := &soak{t: t, kinds: visits()}
	s.done = make([]atomic.Int64, len(s.kinds))
	t.Cleanup(func() { noLeftovers(t) })
	t.Cleanup(s.late.Wait)
	for _, reuse := range []bool{false, true} {
		for _, config := range []*tls.Config{nil, loopbackTLS()} {
			h := &soakHandler{soak: s, reuse: reuse}
			s.forts = append(s.forts, raise(t, &serve.Server{Handler: h, Reuse: reuse, TLSConfig: config}))
		}
	}
	return s
}

// goesOn reports whether there is to be another visit.
func (s *soak) goesOn() bool {
	return !s.t.Failed() && (s.pace == 0 && s.left.Load() > 0 || s.pace > 0 && time.Now().Before(s.until))
}

// flatness is what the process holds, visitors included.
type flatness struct {
	goroutines, descriptors         int
	heap, inUse, runtimes, resident uint64 // inUse: spans of the heap; runtimes: all that Go's runtime has not given back
}

func holds(t *testing.T) flatness {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return flatness{runtime.NumGoroutine(), descriptorsOf(t, "self"),
		m.HeapAlloc, m.HeapInuse, m.Sys - m.HeapReleased, uint64(statusOf(t, "self", "VmRSS:"))}
}

func (f flatness) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, heap %d KiB, in use %d KiB, of Go's runtime %d KiB, resident %d KiB",
		f.goroutines, f.descriptors, f.heap>>10, f.inUse>>10, f.runtimes>>10, f.resident>>10)
}

// watch looks 120 times within took at what the process holds, and tells it each minute. When
// stop is called it says what still grows.
func (s *soak) watch(begin time.Time, took time.Duration) (stop func()) {
	every := took / 120
	ended, done := make(chan struct{}), make(chan struct{})
	var kept []flatness
	go func() {
		defer close(done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for told := begin; ; {
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
			now := holds(s.t)
			kept = append(kept, now)
			if time.Since(told) < time.Minute {
				continue
			}
			told = told.Add(time.Minute)
			sum := int64(0)
			for i := range s.done {
				sum += s.done[i].Load()
			}
			s.t.Logf("after %v: %d requests, %v", time.Since(begin).Round(time.Second), sum, now)
		}
	}()
	return func() {
		close(ended)
		<-done
		s.judge(kept, every)
	}
}

// judge says of all that was watched whether it still grows. Of resident memory that says nothing
// under the race detector, whose own memory is a part of it and grows.
func (s *soak) judge(kept []flatness, every time.Duration) {
	const resident = "KiB of resident memory"
	for _, of := range []struct {
		name  string
		most  float64 // a minute
		value func(flatness) float64
	}{
		{"goroutines", 0.5, func(f flatness) float64 { return float64(f.goroutines) }},
		{"descriptors", 0.5, func(f flatness) float64 { return float64(f.descriptors) }},
		{"KiB of heap in use", 256, func(f flatness) float64 { return float64(f.inUse) / 1024 }},
		{"KiB of Go's runtime", 512, func(f flatness) float64 { return float64(f.runtimes) / 1024 }},
		{resident, 512, func(f flatness) float64 { return float64(f.resident) / 1024 }},
	} {
		var values []float64
		for _, f := range kept {
			values = append(values, of.value(f))
		}
		perMinute, grows := trend(values, every)
		switch {
		case raceEnabled && of.name == resident:
			s.t.Logf("%s: %+.2f a minute, the race detector's own included; not judged", of.name, perMinute)
		case !grows:
			s.t.Logf("%s: no growth beyond chance, %+.2f a minute", of.name, perMinute)
		case perMinute <= of.most:
			s.t.Logf("%s: grows by %.2f a minute, which is allowed up to %.2f", of.name, perMinute, of.most)
		default:
			s.t.Errorf("%s: still grows, %.2f more each minute, want at most %.2f", of.name, perMinute, of.most)
		}
	}
}

// rest waits until the servers have let go of all connections.
func (s *soak) rest(t *testing.T) flatness {
	comes(t, "all connections to end", func() bool { return connGoroutines() == 0 })
	s.late.Wait()
	s.kept.verify(t)
	for _, f := range s.forts {
		f.quiet()
	}
	runtime.GC()
	runtime.GC()
	return holds(t)
}

func (s *soak) report(t *testing.T, took time.Duration) {
	var sum int64
	var text strings.Builder
	for i, kind := range s.kinds {
		n := s.done[i].Load()
		sum += n
		fmt.Fprintf(&text, "\n%12d %s", n, kind.name)
		if n == 0 {
			t.Errorf("no requests of kind %q", kind.name)
		}
	}
	t.Logf("%d requests in %v, by kind:%s", sum, took.Round(time.Second), text.String())
}

// keepsakes are requests that handlers keep after they returned.
type keepsakes struct {
	mu   sync.Mutex
	all  [256]*http.Request
	next int
}

func (k *keepsakes) keep(r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[k.next%len(k.all)] = r
	k.next++
}

// verify holds each kept request to be as it was: its path says its header.
func (k *keepsakes) verify(t *testing.T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.all {
		if r == nil {
			continue
		}
		if want := strings.TrimPrefix(r.URL.Path, "/keep/"); r.Header.Get("X-Id") != want || r.RequestURI != r.URL.Path {
			t.Errorf("a kept request is %q with X-Id %q, want %q", r.RequestURI, r.Header.Get("X-Id"), want)
		}
		if r.Context().Err() == nil {
			t.Errorf("the context of a kept request, %q, has not ended", r.RequestURI)
		}
	}
}

// soakHandler answers the visitors.
type soakHandler struct {
	soak  *soak
	reuse bool
}

func (h *soakHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, rest, _ := strings.Cut(r.URL.Path[1:], "/")
	switch kind {
	case "n":
		io.WriteString(w, rest)
	case "keep":
		if !h.reuse {
			h.soak.kept.keep(r)
		}
		io.WriteString(w, rest)
	case "sum":
		h.sum(w, r)
	case "cut":
		if n, err := io.Copy(io.Discard, r.Body); err == nil {
			h.soak.t.Errorf("a body that was cut off was read whole, %d bytes", n)
		}
	case "part":
		io.ReadFull(r.Body, make([]byte, 10))
		io.WriteString(w, "part")
	case "flush":
		for _, p := range []string{"one ", "two ", rest} {
			io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	case "big":
		n, _ := strconv.Atoi(rest)
		w.Write(pattern[:n])
	case "error":
		http.Error(w, rest, http.StatusTeapot)
	case "panic":
		panic(http.ErrAbortHandler)
	case "wait":
		<-r.Context().Done()
	case "hijack":
		h.hijack(w, rest)
	case "upgrade":
		h.upgrade(w, r)
	case "late":
		if !h.reuse {
			h.soak.late.Go(h.useLate(w, r, rest))
		}
		io.Copy(w, r.Body)
	default:
		h.soak.t.Errorf("the handler got a request for %q", r.RequestURI)
	}
}

var pattern = bytes.Repeat([]byte("0123456789abcdef"), 4<<10)

// sum answers with the length and the checksum of the body.
func (h *soakHandler) sum(w http.ResponseWriter, r *http.Request) {
	sum := crc32.NewIEEE()
	n, err := io.Copy(sum, r.Body)
	if err != nil {
		h.soak.t.Errorf("reading a body: %v after %d bytes", err, n)
	}
	fmt.Fprintf(w, "%d %x", n, sum.Sum32())
}

func (h *soakHandler) hijack(w http.ResponseWriter, rest string) {
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.soak.t.Errorf("hijacking: %v", err)
		return
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(long))
	line, err := rw.ReadString('\n')
	if err != nil {
		h.soak.t.Errorf("reading a hijacked connection: %v", err)
	}
	fmt.Fprintf(rw, "taken %s %s", rest, line)
	rw.Flush()
}

// upgrade echoes lines until the client goes.
func (h *soakHandler) upgrade(w http.ResponseWriter, r *http.Request) {
	nc, rw, err := http.NewResponseController(w).Hijack()
	if err != nil || r.Header.Get("Upgrade") != "echo" {
		h.soak.t.Errorf("hijacking: %v, for %q, want an upgrade to echo", err, r.Header.Get("Upgrade"))
		return
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(long))
	io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		io.WriteString(nc, line)
	}
}

// useLate returns what looks at the answer's fields while the handler returns, and then uses all
// that the handler had: it is the request's own, or refuses.
func (h *soakHandler) useLate(w http.ResponseWriter, r *http.Request, id string) func() {
	fields := w.Header()
	fields.Set("X-Id", id)
	own := func() bool {
		return fields.Get("X-Id") == id && r.Header.Get("X-Id") == id && r.URL.Path == "/late/"+id
	}
	return func() {
		for own() && r.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		w.WriteHeader(http.StatusTeapot)
		_, wrote := io.WriteString(w, "late")
		_, read := r.Body.Read(make([]byte, 1))
		c := http.NewResponseController(w)
		_, _, took := c.Hijack()
		if flushed := c.Flush(); !own() || wrote == nil || read == nil || took == nil || flushed == nil {
			h.soak.t.Errorf("used late: own %t, write %v, read %v, hijack %v, flush %v, want its own and errors", own(), wrote, read, took, flushed)
		}
	}
}
