package balance

// places is the size of a Maglev table, a prime: with 256 targets a place is 0.4 % of the
// share of one.
const places = 65537

// Maglev returns a policy that gives requests with one key to one target. When targets
// come or go, few of the keys of the others move. Every process that has the same names
// and weights chooses alike.
//
// It is the table of section 3.4 of Eisenbud and others, "Maglev: A Fast and Reliable
// Software Network Load Balancer" (NSDI 2016): the targets take turns, each to take the
// next free place of an order of its own. Here a target of half the weight has half the
// turns.
func Maglev(names []string, weights []int) Policy {
	heaviest := 0
	for _, w := range weights {
		heaviest = max(heaviest, w)
	}
	if heaviest == 0 {
		return &maglev{}
	}
	table := make([]int16, places)
	for i := range table {
		table[i] = -1
	}
	orders := make([]order, len(names))
	for i, name := range names {
		orders[i] = newOrder(name)
	}
	credit := make([]int, len(names))
	for taken := 0; ; {
		for i, w := range weights {
			if credit[i] += w; w == 0 || credit[i] < heaviest {
				continue
			}
			credit[i] -= heaviest
			table[orders[i].nextFree(table)] = int16(i)
			if taken++; taken == places {
				return &maglev{table}
			}
		}
	}
}

// order is in which a target takes places: all of them, since their number is a prime.
type order struct{ at, step uint64 }

func newOrder(name string) order {
	h := Hash(name)
	return order{h % places, mix(h+1)%(places-1) + 1}
}

func (o *order) nextFree(table []int16) uint64 {
	for table[o.at] >= 0 {
		o.at = (o.at + o.step) % places
	}
	return o.at
}

type maglev struct{ table []int16 }

// Pick goes on to the next place where a target is skipped: its keys spread over the
// others as the table does.
func (p *maglev) Pick(key uint64, skip *Skip) int {
	if len(p.table) == 0 {
		return -1
	}
	at := key % places
	for range p.table {
		if i := int(p.table[at]); !skip.Has(i) {
			return i
		}
		if at++; at == places {
			at = 0
		}
	}
	return -1
}

// Hash returns a key for a text, the same in every process (FNV-1a, mixed).
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// mix spreads differences over all bits (the finaliser of SplitMix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
