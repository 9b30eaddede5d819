package load_test

import (
	"testing"

	"github.com/tarehq/tare/load"
)

func TestRecordAllocates(t *testing.T) {
	record := load.RecordRequests()
	if got := testing.AllocsPerRun(1000, record); got != 0 {
		t.Errorf("got %v allocations a request, want none", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	record := load.RecordRequests()
	b.ReportAllocs()
	for b.Loop() {
		record()
	}
}
