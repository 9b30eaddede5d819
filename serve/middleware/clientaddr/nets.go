package clientaddr

import (
	"encoding/binary"
	"net/netip"
)

// nets are prefixes, those of IPv4 as numbers: each request asks whether an address is in one
// (BenchmarkRequest).
type nets struct {
	some bool // there are any
	v4   []net4
	rest []netip.Prefix
}

type net4 struct{ bits, mask uint32 }

func netsOf(all []netip.Prefix) nets {
	n := nets{some: len(all) > 0}
	for _, p := range all {
		if p.IsValid() && p.Addr().Is4() {
			mask := ^uint32(0) << (32 - p.Bits())
			n.v4 = append(n.v4, net4{number(p.Addr()) & mask, mask})
		} else {
			n.rest = append(n.rest, p)
		}
	}
	return n
}

// contain reports whether a, which is no IPv4 in the clothes of IPv6, is in one of n.
func (n *nets) contain(a netip.Addr) bool {
	if a.Is4() {
		x := number(a)
		for _, p := range n.v4 {
			if x&p.mask == p.bits {
				return true
			}
		}
		return false
	}
	for _, p := range n.rest {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func number(a netip.Addr) uint32 {
	octets := a.As4()
	return binary.BigEndian.Uint32(octets[:])
}

// peer4 reads an address of IPv4 with its port as servers write it. For anything else it is
// not ok.
//
// Note: netip.ParseAddrPort reads it too, and takes longer (BenchmarkPeer).
func peer4(s string) (addr netip.Addr, ok bool) {
	var octets [4]byte
	whole, value, digits := 0, 0, 0
	for i := range len(s) {
		c := s[i]
		if '0' <= c && c <= '9' {
			value = 10*value + int(c-'0')
			if digits++; digits > 5 {
				return addr, false
			}
			continue
		}
		zero := digits > 1 && value < 10 || digits > 2 && value < 100 // at the beginning
		if whole > 3 || digits == 0 || digits > 3 || zero || value > 255 || c != "...:"[whole] {
			return addr, false
		}
		octets[whole] = byte(value)
		whole, value, digits = whole+1, 0, 0
	}
	return netip.AddrFrom4(octets), whole == 4 && digits > 0 && value <= 65535
}
