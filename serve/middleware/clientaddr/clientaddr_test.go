package clientaddr_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
)

func Example() {
	trusted := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	h := clientaddr.New(clientaddr.Options{Trusted: trusted})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(clientaddr.From(r))
	}))
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.1:4711"
	r.Header.Set("X-Forwarded-For", "10.1.1.1, 203.0.113.7") // the first is the client's own invention
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: 203.0.113.7
}

// TestSpoofing is the table of what clients try. 10.0.0.0/8 and fd00::/8 are proxies.
func TestSpoofing(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		header string
		peer   string
		fields []string
		want   string
	}{
		"no proxy":                     {"", "203.0.113.7:1", nil, "203.0.113.7"},
		"client writes the field":      {"", "203.0.113.7:1", []string{"1.2.3.4"}, "203.0.113.7"},
		"one proxy":                    {"", "10.0.0.1:1", []string{"203.0.113.7"}, "203.0.113.7"},
		"client before one proxy":      {"", "10.0.0.1:1", []string{"1.2.3.4, 203.0.113.7"}, "203.0.113.7"},
		"two proxies":                  {"", "10.0.0.1:1", []string{"1.2.3.4, 203.0.113.7,10.0.0.2"}, "203.0.113.7"},
		"client claims a proxy's":      {"", "10.0.0.1:1", []string{"10.9.9.9, 203.0.113.7"}, "203.0.113.7"},
		"two lines":                    {"", "10.0.0.1:1", []string{"1.2.3.4", "203.0.113.7"}, "203.0.113.7"},
		"client's line comes first":    {"", "10.0.0.1:1", []string{"1.2.3.4, 10.0.0.9", "203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		"all are proxies":              {"", "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"proxy without the field":      {"", "10.0.0.1:1", nil, "10.0.0.1"},
		"empty":                        {"", "10.0.0.1:1", []string{""}, "10.0.0.1"},
		"empty element":                {"", "10.0.0.1:1", []string{"203.0.113.7,"}, "10.0.0.1"},
		"unknown":                      {"", "10.0.0.1:1", []string{"1.2.3.4, unknown"}, "10.0.0.1"},
		"unknown behind a proxy":       {"", "10.0.0.1:1", []string{"1.2.3.4, unknown, 10.0.0.2"}, "10.0.0.2"},
		"with a port":                  {"", "10.0.0.1:1", []string{"203.0.113.7:8080"}, "203.0.113.7"},
		"IPv6":                         {"", "[fd00::1]:1", []string{"2001:db8::7"}, "2001:db8::7"},
		"IPv6 in brackets":             {"", "[fd00::1]:1", []string{"[2001:db8::7]"}, "2001:db8::7"},
		"IPv6 with a port":             {"", "[fd00::1]:1", []string{"[2001:db8::7]:1"}, "2001:db8::7"},
		"IPv4 in brackets":             {"", "10.0.0.1:1", []string{"[203.0.113.7]"}, "10.0.0.1"},
		"mapped peer":                  {"", "[::ffff:10.0.0.1]:1", []string{"203.0.113.7"}, "203.0.113.7"},
		"mapped client":                {"", "10.0.0.1:1", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		"mapped proxy":                 {"", "10.0.0.1:1", []string{"203.0.113.7, ::ffff:10.0.0.2"}, "203.0.113.7"},
		"zone":                         {"", "10.0.0.1:1", []string{"fe80::1%eth0"}, "10.0.0.1"},
		"leading zeros":                {"", "10.0.0.1:1", []string{"203.0.113.007"}, "10.0.0.1"},
		"Unix socket":                  {"", "@", []string{"1.2.3.4, 203.0.113.7"}, "203.0.113.7"},
		"Unix socket, no field":        {"", "@", nil, "invalid IP"},
		"own field":                    {"X-Real-Ip", "10.0.0.1:1", []string{"203.0.113.7"}, "203.0.113.7"},
		"Forwarded":                    {"Forwarded", "10.0.0.1:1", []string{"for=1.2.3.4, for=203.0.113.7;proto=https;by=10.0.0.1"}, "203.0.113.7"},
		"Forwarded, quoted":            {"Forwarded", "10.0.0.1:1", []string{`For="[2001:db8::7]:4711"`}, "2001:db8::7"},
		"Forwarded, obfuscated":        {"Forwarded", "10.0.0.1:1", []string{`for=1.2.3.4, for=_hidden`}, "10.0.0.1"},
		"Forwarded, hidden port":       {"Forwarded", "10.0.0.1:1", []string{`for="203.0.113.7:_a.b-1"`}, "203.0.113.7"},
		"Forwarded, IPv6, hidden port": {"Forwarded", "10.0.0.1:1", []string{`for="[2001:db8::7]:_x"`}, "2001:db8::7"},
		"Forwarded, hidden altogether": {"Forwarded", "10.0.0.1:1", []string{`for="_x:_y"`}, "10.0.0.1"},
		"Forwarded, quoted comma":      {"Forwarded", "10.0.0.1:1", []string{`for="1.2.3.4, for=5.6.7.8"`}, "10.0.0.1"},
		"Forwarded, open quote":        {"Forwarded", "10.0.0.1:1", []string{`for="1.2.3.4, for=203.0.113.7`}, "203.0.113.7"},
		"Forwarded, open quote before": {"Forwarded", "10.0.0.1:1", []string{`for=";by=1, for=203.0.113.7`}, "203.0.113.7"},
		"Forwarded, quoted semicolon":  {"Forwarded", "10.0.0.1:1", []string{`host="x;for=1.2.3.4";for=203.0.113.7`}, "203.0.113.7"},
		"Forwarded, quote in a quote":  {"Forwarded", "10.0.0.1:1", []string{`for=203.0.113.7;host="x\";for=1.2.3.4"`}, "203.0.113.7"},
		"Forwarded, twice":             {"Forwarded", "10.0.0.1:1", []string{"for=203.0.113.7;for=1.2.3.4"}, "10.0.0.1"},
		"Forwarded, no for":            {"Forwarded", "10.0.0.1:1", []string{"for=1.2.3.4, proto=https"}, "10.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			header := c.header
			if header == "" {
				header = "X-Forwarded-For"
			}
			for chained, wrap := range map[bool]func(http.Handler) http.Handler{
				false: clientaddr.New(clientaddr.Options{Trusted: trusted, Header: c.header}),
				true: func(h http.Handler) http.Handler {
					return chain.Must(chain.New(clientaddr.New(clientaddr.Options{Trusted: trusted, Header: c.header})).Then(h))
				},
			} {
				r := httptest.NewRequest("GET", "/", nil)
				r.RemoteAddr = c.peer
				r.Header[header] = append([]string(nil), c.fields...)
				wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if got := clientaddr.From(r).String(); got != c.want {
						t.Errorf("in a chain %t: %s, want %s", chained, got, c.want)
					}
					if got := r.Header[header]; fmt.Sprint(got) != fmt.Sprint(c.fields) {
						t.Errorf("the field became %q", got)
					}
				})).ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// TestManyProxies has a list that trusted proxies alone are in: each of them takes no memory, nor
// the time that a copy of all lines does.
func TestManyProxies(t *testing.T) {
	h := clientaddr.New(clientaddr.Options{Trusted: clientaddr.Private()})(http.NotFoundHandler())
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:1"
	r.Header["X-Forwarded-For"] = append(slices.Repeat([]string{"10.0.0.2"}, 100), strings.Repeat("10.0.0.3, ", 100)+"10.0.0.4")
	w := &sink{http.Header{}}
	if n := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); n > 20 {
		t.Errorf("%v allocations for 201 proxies, want what one takes", n)
	}
}

// sink is a writer that takes no memory.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

// TestTrustsNobody is the zero value.
func TestTrustsNobody(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Forwarded-For", "1.2.3.4")
	clientaddr.New(clientaddr.Options{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got := clientaddr.From(r); got != netip.MustParseAddr("127.0.0.1") {
			t.Error(got)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}

// FuzzForwarded reads any field: behind a trusted proxy the last element alone decides
// while it is no trusted address.
func FuzzForwarded(f *testing.F) {
	f.Add("for=1.2.3.4", true)
	f.Add(`for="[2001:db8::7]:4711";by=x, for="\",`, true)
	f.Add("1.2.3.4, [::1]:2,, %", false)
	trusted := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	f.Fuzz(func(t *testing.T, before string, forwarded bool) {
		header, ours := "X-Forwarded-For", "203.0.113.7"
		if forwarded {
			header, ours = "Forwarded", "for=203.0.113.7"
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "192.0.2.1:1"
		r.Header[header] = []string{before, ours} // the proxy adds a line of its own
		clientaddr.New(clientaddr.Options{Trusted: trusted, Header: header})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := clientaddr.From(r); got != netip.MustParseAddr("203.0.113.7") {
				t.Errorf("%q made it %s", before, got)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	})
}

// FuzzPeer reads any address of a connection as net/netip does.
func FuzzPeer(f *testing.F) {
	for _, s := range []string{"192.0.2.1:4711", "255.255.255.255:65535", "0.0.0.0:0", "192.0.2.1:65536", "192.0.2.1:00080", "192.0.2.1:000080",
		"192.0.2.01:1", "192.0.2.1", "192.0.2.1:", "192.0.2.256:1", "192.0.2.0255:1", "1.2.3:4", "1.2.3.4.5:6", "1.2.3.4:5:6", "1..2.3:4", ":1",
		"[2001:db8::7]:1", "[fe80::1%eth0]:1", "[::ffff:192.0.2.1]:1", "@", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, _ := netip.ParseAddrPort(text) // of what it cannot read the address is invalid
		if got, want := clientaddr.From(&http.Request{RemoteAddr: text}), at.Addr().Unmap().WithZone(""); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	})
}

// FuzzTrusted asks whether any prefix has any address, as net/netip says: the word of a
// connection's address that is trusted counts.
func FuzzTrusted(f *testing.F) {
	f.Add([]byte{192, 0, 2, 1}, []byte{192, 0, 2, 0}, 24)
	f.Add([]byte{192, 0, 2, 1}, []byte{0, 0, 0, 0}, 0)
	f.Add([]byte{192, 0, 2, 1}, []byte{192, 0, 2, 1}, 32)
	f.Add([]byte{192, 0, 2, 1}, []byte{192, 0, 2, 3}, 31)
	f.Add([]byte("\x20\x01\x0d\xb8............"), []byte("\x20\x01\x0d\xb8~~~~~~~~~~~~"), 32)
	f.Add([]byte{192, 0, 2, 1}, []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x00"), 120)
	f.Fuzz(func(t *testing.T, address, prefix []byte, bits int) {
		from, ok := netip.AddrFromSlice(address)
		in, _ := netip.AddrFromSlice(prefix)
		if !ok {
			return
		}
		from, p := from.Unmap(), netip.PrefixFrom(in, bits)
		want := from
		if p.Contains(from) {
			want = netip.MustParseAddr("203.0.113.7")
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = netip.AddrPortFrom(from, 1).String()
		r.Header["X-Forwarded-For"] = []string{"203.0.113.7"}
		clientaddr.New(clientaddr.Options{Trusted: []netip.Prefix{p}})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := clientaddr.From(r); got != want {
				t.Errorf("%s in %s: got %s, want %s", from, p, got, want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	})
}

// BenchmarkRequest finds a client that connects itself, and one behind two proxies, in a
// chain on net/http. Log and limit then ask who it is.
func BenchmarkRequest(b *testing.B) {
	h := chain.Must(chain.New(clientaddr.New(clientaddr.Options{Trusted: clientaddr.Private()})).Then(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for range 2 {
			if !clientaddr.From(r).IsValid() {
				b.Error("got no address")
			}
		}
	})))
	for proxies, from := range map[string]string{"0": "203.0.113.7:4711", "2": "10.0.0.1:4711"} {
		b.Run("proxies="+proxies, func(b *testing.B) {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = from
			r.Header.Set("X-Forwarded-For", "203.0.113.7, 10.0.0.2")
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkPeer reads the address of a connection.
func BenchmarkPeer(b *testing.B) {
	for kind, at := range map[string]string{"4": "203.0.113.7:40000", "6": "[2001:db8::7]:40000"} {
		b.Run("kind="+kind, func(b *testing.B) {
			r := &http.Request{RemoteAddr: at}
			for b.Loop() {
				if !clientaddr.From(r).IsValid() {
					b.Fatal("got no address")
				}
			}
		})
	}
}
