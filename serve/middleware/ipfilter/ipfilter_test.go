package ipfilter_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/ipfilter"
)

func Example() {
	deny, err := ipfilter.Read(strings.NewReader("198.51.100.0/24 # a botnet\n2001:db8::7\n"))
	if err != nil {
		panic(err)
	}
	f, err := ipfilter.New(ipfilter.Options{Deny: deny})
	if err != nil {
		panic(err)
	}
	h := f.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, from := range []string{"198.51.100.7:4711", "[2001:db8::7]:4711", "[2001:db8::8]:4711"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 403
	// 403
	// 200
}

func prefixes(texts ...string) []netip.Prefix {
	all := []netip.Prefix{}
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func open(t testing.TB, o ipfilter.Options) *ipfilter.Filter {
	t.Helper()
	f, err := ipfilter.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLists(t *testing.T) {
	both := ipfilter.Options{Allow: prefixes("10.0.0.0/8", "fd00::/8"), Deny: prefixes("10.1.0.0/16", "10.2.3.4/32", "fd01::/16")}
	all := prefixes("0.0.0.0/0", "::/0")
	for _, c := range []struct {
		o    ipfilter.Options
		addr string // empty: none
		want bool
	}{
		{ipfilter.Options{}, "203.0.113.7", true},
		{ipfilter.Options{}, "", true},
		{both, "10.0.0.0", true},
		{both, "10.255.255.255", true},
		{both, "9.255.255.255", false},
		{both, "11.0.0.0", false},
		{both, "10.0.255.255", true},
		{both, "10.1.0.0", false},
		{both, "10.1.255.255", false},
		{both, "10.2.0.0", true},
		{both, "10.2.3.3", true},
		{both, "10.2.3.4", false},
		{both, "10.2.3.5", true},
		{both, "::ffff:10.2.3.4", false},
		{both, "::ffff:10.2.3.5", true},
		{both, "fd00::1", true},
		{both, "fd01::1", false},
		{both, "fd02::", true},
		{both, "fe00::", false},
		{both, "", false},
		{ipfilter.Options{Allow: []netip.Prefix{}}, "10.0.0.1", false},
		{ipfilter.Options{Deny: []netip.Prefix{}}, "10.0.0.1", true},
		{ipfilter.Options{Deny: all}, "255.255.255.255", false},
		{ipfilter.Options{Deny: all}, "0.0.0.0", false},
		{ipfilter.Options{Deny: all}, "::", false},
		{ipfilter.Options{Deny: all}, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
		{ipfilter.Options{Deny: all}, "", true},
		{ipfilter.Options{Deny: prefixes("0.0.0.0/0")}, "::1", true},
		{ipfilter.Options{Deny: prefixes("::/0")}, "1.2.3.4", true},
		{ipfilter.Options{Deny: prefixes("::ffff:1.2.3.0/120")}, "1.2.3.4", false},
		{ipfilter.Options{Deny: prefixes("1.0.0.0/9", "1.128.0.0/9", "1.2.0.0/16")}, "1.255.255.255", false},
		{ipfilter.Options{Deny: prefixes("1.0.0.0/9", "1.128.0.0/9", "1.2.0.0/16")}, "2.0.0.0", true},
		{ipfilter.Options{Deny: prefixes("255.255.255.255/32", "::/128")}, "255.255.255.254", true},
		{ipfilter.Options{Deny: prefixes("255.255.255.255/32", "::/128")}, "::1", true},
	} {
		var addr netip.Addr
		if c.addr != "" {
			addr = netip.MustParseAddr(c.addr)
		}
		if got := open(t, c.o).Allows(addr); got != c.want {
			t.Errorf("allow %v, deny %v: %q passes: %v", c.o.Allow, c.o.Deny, c.addr, got)
		}
	}
}

// TestLikeContains compares random lists with what the prefixes say themselves, at their
// edges and one beyond.
func TestLikeContains(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		list := randomPrefixes(random, 1+random.IntN(40), 2+random.IntN(31))
		f := open(t, ipfilter.Options{Deny: list})
		var asked []netip.Addr
		for _, p := range list {
			last := lastOf(p)
			asked = append(asked, p.Addr(), p.Addr().Prev(), last, last.Next())
		}
		for _, a := range asked {
			in := slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
			if a.IsValid() && f.Allows(a) == in {
				t.Fatalf("%v is in %v: %v", a, list, in)
			}
		}
	}
}

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// randomPrefixes returns prefixes of that length and longer, IPv4 and IPv6 in turn.
func randomPrefixes(random *rand.Rand, n, shortest int) []netip.Prefix {
	all := make([]netip.Prefix, n)
	for i := range all {
		b := make([]byte, 4+12*(i%2))
		for j := range b {
			b[j] = byte(random.Uint32())
		}
		a, _ := netip.AddrFromSlice(b)
		bits := shortest + random.IntN(33-shortest)
		if a.Is6() {
			bits *= 3
		}
		all[i], _ = a.Prefix(bits)
	}
	return all
}

func TestRefused(t *testing.T) {
	for text, why := range map[string]string{
		"10.0.0.1/8":     "is it 10.0.0.0/8",
		"2001:db8::1/32": "is it 2001:db8::/32",
	} {
		for _, o := range []ipfilter.Options{{Allow: prefixes(text)}, {Deny: prefixes(text)}} {
			if _, err := ipfilter.New(o); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v, want %q in it", text, err, why)
			}
		}
	}
	if _, err := ipfilter.New(ipfilter.Options{Deny: make([]netip.Prefix, 1)}); err == nil {
		t.Error("an invalid prefix is accepted")
	}
}

func TestRead(t *testing.T) {
	got, err := ipfilter.Read(strings.NewReader("# a list\n\n10.0.0.0/8 ; mine\r\n  192.0.2.1\n2001:db8::/32#x\n::1"))
	if want := prefixes("10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "::1/128"); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"10.0.0.0/33", "\nhost", "10.0.0.1-10.0.0.9", "fe80::1%eth0", "10.0.0.0/8 10.1.0.0/16", strings.Repeat("1", 100_000)} {
		if got, err := ipfilter.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%.40q: got %v", text, got)
		}
	}
	if got, err := ipfilter.Read(strings.NewReader("")); err != nil || got == nil {
		t.Errorf("an empty list: got %v, %v; a list is not nil, which would allow all", got, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("10.0.0.0/8 # x\n2001:db8::7\n", "10.1.2.3")
	f.Add("0.0.0.0/1\n128.0.0.0/1", "255.255.255.255")
	f.Add("::/1\n8000::/1\n::ffff:1.2.3.0/120", "1.2.3.4")
	f.Fuzz(func(t *testing.T, text, addr string) {
		list, err := ipfilter.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		filter, err := ipfilter.New(ipfilter.Options{Deny: list})
		a, parseErr := netip.ParseAddr(addr)
		if err != nil || parseErr != nil {
			return
		}
		in := slices.ContainsFunc(list, func(p netip.Prefix) bool {
			if p.Addr().Is4In6() && p.Bits() >= 96 {
				p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
			}
			return p.Contains(a.Unmap().WithZone(""))
		})
		if filter.Allows(a) == in {
			t.Errorf("%v is in %v: %v", a, list, in)
		}
	})
}

// TestReload replaces lists of 100,000 prefixes under 1,000 clients: who is in all of them
// is refused each time, who is in none passes.
func TestReload(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	always := netip.MustParsePrefix("198.51.100.0/24")
	var versions [3][]netip.Prefix
	for i := range versions {
		for len(versions[i]) < 100_000 {
			a := netip.AddrFrom4([4]byte{10, byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())})
			versions[i] = append(versions[i], netip.PrefixFrom(a, 32))
		}
		versions[i] = append(versions[i], always)
	}
	f := open(t, ipfilter.Options{Deny: versions[0]})
	var clients sync.WaitGroup
	for range 1000 {
		clients.Go(func() {
			for range 100 {
				if f.Allows(netip.MustParseAddr("198.51.100.7")) || !f.Allows(netip.MustParseAddr("203.0.113.7")) {
					t.Error("a request saw other lists than those")
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	for i := range 3 {
		if err := f.SetLists(nil, versions[i]); err != nil {
			t.Error(err)
		}
	}
	if err := f.SetLists(nil, make([]netip.Prefix, 1)); err == nil {
		t.Error("an invalid list was accepted")
	}
	clients.Wait()
}

func TestRefuse(t *testing.T) {
	f := open(t, ipfilter.Options{
		Allow:   prefixes("192.0.2.0/24"),
		Address: func(r *http.Request) netip.Addr { return netip.MustParseAddr(r.Header.Get("X-From")) },
		Refuse:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }),
	})
	for from, want := range map[string]int{"192.0.2.1": 200, "192.0.3.1": 404} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("X-From", from)
		f.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", from, w.Code, want)
		}
	}
	if f.Refused() != 1 {
		t.Errorf("%d refused", f.Refused())
	}
}

func TestAllocs(t *testing.T) {
	h := open(t, ipfilter.Options{Deny: prefixes("10.0.0.0/8")}).Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkAllows(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	f := open(b, ipfilter.Options{Deny: randomPrefixes(random, 200_000, 16)}) // half of them IPv4
	for i, family := range []string{"4", "6"} {
		var asked [1 << 12]netip.Addr
		for j, p := range randomPrefixes(random, 2*len(asked), 32) {
			if j%2 == i {
				asked[j/2] = p.Addr()
			}
		}
		b.Run("ipv="+family, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.Allows(asked[i%len(asked)])
			}
		})
	}
}
