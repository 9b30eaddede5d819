package lab

import "github.com/tarehq/tare/lab/record"

// arrange shares the usable CPUs out: the first half to the specimen, the rest
// to the instrument. With one CPU both use it, and the manifest says so.
func arrange() record.Pinning {
	cpus := usableCPUs()
	if len(cpus) < 2 {
		return record.Pinning{Instrument: cpus, Specimen: cpus}
	}
	half := len(cpus) / 2
	return record.Pinning{Specimen: cpus[:half], Instrument: cpus[half:], Disjoint: true}
}

// confine keeps the threads of this process off the specimen's CPUs for as
// long as a run lasts; the returned function lifts the bound.
func confine(p record.Pinning) (release func()) {
	if !p.Disjoint || setAffinity(p.Instrument) != nil {
		return func() {}
	}
	all := append(append([]int(nil), p.Specimen...), p.Instrument...)
	return func() {
		_ = setAffinity(all) // the run is over; a bound left behind only slows what follows
	}
}
