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
