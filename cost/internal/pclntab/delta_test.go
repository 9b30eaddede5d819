package pclntab_test

import (
	"testing"

	"github.com/tarehq/tare/cost/internal/pclntab"
)

// Deltas answer as the table does, before and after they remember, and for more addresses than they
// keep.
func TestDeltas(t *testing.T) {
	table := open(t, "/proc/self/exe")
	from, to := table.Code()
	from = (from + to) / 2 // a program with C has that first
	var d pclntab.Deltas
	known := 0
	for range 2 {
		for pc := from; pc < min(to, from+10_000); pc += 3 {
			want, ok := table.SPDelta(pc)
			for range 2 {
				if got, same := d.At(table, pc); got != want || same != ok {
					t.Fatalf("at %#x: got %d, %t, want %d, %t", pc, got, same, want, ok)
				}
			}
			if ok {
				known++
			}
		}
	}
	if known == 0 {
		t.Error("no delta is known: this test shows nothing")
	}
}

// BenchmarkDeltas asks ten times for each of ten addresses, after which the memory of the table is
// given back.
func BenchmarkDeltas(b *testing.B) {
	table := open(b, "/proc/self/exe")
	from, to := table.Code()
	var d pclntab.Deltas
	for name, at := range map[string]func(uint64){
		"remembered=no":  func(pc uint64) { table.SPDelta(pc) },
		"remembered=yes": func(pc uint64) { d.At(table, pc) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for k := range uint64(100) {
					at(from + k%10*((to-from)/10))
				}
				table.Cool()
			}
		})
	}
}
