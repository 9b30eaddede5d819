package hist_test

import (
	"math/rand/v2"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/tarehq/tare/stats/hist"
)

// latencies are a thousand plausible service times.
func latencies() (vs [1024]int64) {
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range vs {
		vs[i] = 30_000 + int64(rng.ExpFloat64()*1e5)
	}
	return vs
}

func BenchmarkRecord(b *testing.B) {
	vs := latencies()
	b.Run("by=tare", func(b *testing.B) {
		b.ReportAllocs()
		h := hist.New()
		for i := 0; b.Loop(); i++ {
			h.Record(vs[i%len(vs)])
		}
	})
	b.Run("by=HdrHistogram", func(b *testing.B) {
		b.ReportAllocs()
		h := hdr.New(1, hist.Highest, 3)
		for i := 0; b.Loop(); i++ {
			_ = h.RecordValue(vs[i%len(vs)])
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	vs := latencies()
	from := record(vs[:]...)
	b.Run("by=tare", func(b *testing.B) {
		b.ReportAllocs()
		h := hist.New()
		for b.Loop() {
			h.Merge(from)
		}
	})
	b.Run("by=HdrHistogram", func(b *testing.B) {
		b.ReportAllocs()
		h, part := hdr.New(1, hist.Highest, 3), hdr.New(1, hist.Highest, 3)
		for _, v := range vs {
			_ = part.RecordValue(v)
		}
		for b.Loop() {
			h.Merge(part)
		}
	})
}

func BenchmarkMergeAppended(b *testing.B) {
	vs := latencies()
	from := record(vs[:]...).Append(nil)
	h := hist.New()
	b.ReportAllocs()
	for b.Loop() {
		if err := h.MergeAppended(from); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuantile(b *testing.B) {
	vs := latencies()
	h := record(vs[:]...)
	b.ReportAllocs()
	for b.Loop() {
		h.Quantile(0.99)
	}
}
