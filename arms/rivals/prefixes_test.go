package rivals_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/gaissmai/bart"

	"github.com/tarehq/tare/serve/middleware/ipfilter"
)

// prefixTables returns 100,000 prefixes, IPv4 and IPv6 in turn, in the table of ipfilter
// and in that of bart, with addresses to ask for.
func prefixTables(t testing.TB) (*ipfilter.Filter, *bart.Lite, map[string][]netip.Addr) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	list, theirs, asked := make([]netip.Prefix, 100_000), new(bart.Lite), map[string][]netip.Addr{}
	for i := range list {
		b := make([]byte, 4+12*(i%2))
		for j := range b {
			b[j] = byte(random.Uint32())
		}
		a, _ := netip.AddrFromSlice(b)
		list[i], _ = a.Prefix((16 + random.IntN(17)) * a.BitLen() / 32)
		theirs.Insert(list[i])
		family := "ipv4"
		if a.Is6() {
			family = "ipv6"
		}
		if near := i % 64 / 2 % 2; len(asked[family]) < 1<<12 {
			b[len(b)-1-near] ^= byte(i) // in the list, or beside it
			a, _ = netip.AddrFromSlice(b)
			asked[family] = append(asked[family], a)
		}
	}
	ours, err := ipfilter.New(ipfilter.Options{Allow: list})
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs, asked
}

// TestPrefixes has both tables say the same.
func TestPrefixes(t *testing.T) {
	ours, theirs, asked := prefixTables(t)
	for _, addrs := range asked {
		in := 0
		for _, a := range addrs {
			got, want := ours.Allows(a), theirs.Contains(a)
			if got != want {
				t.Errorf("%v: ipfilter has it: %v, bart: %v", a, got, want)
			}
			if want {
				in++
			}
		}
		if in < len(addrs)/10 || in > len(addrs)*9/10 {
			t.Errorf("%d of %d are in the list: one side is hardly tried", in, len(addrs))
		}
	}
}

func BenchmarkPrefixes(b *testing.B) {
	ours, theirs, asked := prefixTables(b)
	for _, family := range []string{"ipv4", "ipv6"} {
		addrs := asked[family]
		for name, has := range map[string]func(netip.Addr) bool{"ipfilter": ours.Allows, "bart": theirs.Contains} {
			b.Run("family="+family+"/table="+name, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					has(addrs[i%len(addrs)])
				}
			})
		}
	}
}
