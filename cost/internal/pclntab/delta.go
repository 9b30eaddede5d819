package pclntab

// Deltas remember what SPDelta answered. Threads stop running at few places, and to look one up
// reads pages of the program's file that were given back since (BenchmarkDeltas). The zero value
// remembers nothing. It is not safe for concurrent use.
type Deltas struct{ of map[uint64]delta }

type delta struct {
	bytes int32
	known bool
}

// At is SPDelta of a table, which is the same each time.
func (d *Deltas) At(t *Table, pc uint64) (bytes int, known bool) {
	const most = 2048 // addresses, in some tens of kilobytes
	if at, seen := d.of[pc]; seen {
		return int(at.bytes), at.known
	}
	bytes, known = t.SPDelta(pc)
	if d.of == nil || len(d.of) >= most {
		d.of = map[uint64]delta{}
	}
	d.of[pc] = delta{int32(bytes), known}
	return bytes, known
}
