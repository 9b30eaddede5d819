package hist_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"github.com/tarehq/tare/stats/hist"
)

// values draws durations of every magnitude.
func values(most int) *rapid.Generator[[]int64] {
	anywhere := rapid.Custom(func(t *rapid.T) int64 {
		return rapid.Int64Range(0, hist.Highest>>rapid.IntRange(0, 40).Draw(t, "shift")).Draw(t, "ns")
	})
	return rapid.SliceOfN(anywhere, 1, most)
}

func record(vs ...int64) *hist.Hist {
	h := hist.New()
	for _, v := range vs {
		h.Record(v)
	}
	return h
}

// counts are h's as HdrHistogram lays them out.
func counts(h *hist.Hist) []int64 {
	peer := hdr.New(1, hist.Highest, 3)
	for b := range h.Buckets() {
		if err := peer.RecordValues(b.Lo, int64(b.Count)); err != nil {
			panic(err)
		}
	}
	return peer.Export().Counts
}

// TestBuckets holds the buckets against HdrHistogram's own at all edges.
func TestBuckets(t *testing.T) {
	peer := hdr.New(1, hist.Highest, 3)
	for v := int64(1); v <= hist.Highest; v = v*17/16 + 1 {
		for b := range record(v).Buckets() {
			for _, edge := range []int64{b.Lo, v, b.Hi} {
				if !peer.ValuesAreEquivalent(edge, v) {
					t.Errorf("%d and %d share a bucket, but not in HdrHistogram", edge, v)
				}
			}
			if peer.ValuesAreEquivalent(b.Lo-1, v) || peer.ValuesAreEquivalent(b.Hi+1, v) {
				t.Errorf("bucket of %d is %d to %d, wider in HdrHistogram", v, b.Lo, b.Hi)
			}
			if float64(b.Hi-b.Lo) > float64(b.Lo)/1000 {
				t.Errorf("bucket %d to %d is wider than 0.1 %%", b.Lo, b.Hi)
			}
		}
	}
}

// TestSorted holds every answer against the sorted values.
func TestSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := values(200).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		above := rapid.SampledFrom(vs).Draw(t, "above")
		h := record(vs...)
		slices.Sort(vs)
		want := vs[max(0, int(math.Ceil(q*float64(len(vs))*(1-0x1p-51)))-1)]
		if got := h.Quantile(q); got < want || float64(got-want) > float64(want)/1000 {
			t.Fatalf("Quantile(%v) of %v = %d, want %d, or up to 0.1 %% above", q, vs, got, want)
		}
		if h.Min() != vs[0] || h.Max() != vs[len(vs)-1] || h.Count() != uint64(len(vs)) {
			t.Fatalf("of %v: min %d, max %d, count %d", vs, h.Min(), h.Max(), h.Count())
		}
		least, most := uint64(0), uint64(0)
		for _, v := range vs {
			if float64(v) > float64(above)*1.001 {
				least++
			}
			if v > above {
				most++
			}
		}
		if got := h.CountAbove(above); got < least || got > most {
			t.Fatalf("CountAbove(%d) of %v = %d, want %d to %d", above, vs, got, least, most)
		}
		var n uint64
		last := int64(-1)
		for b := range h.Buckets() {
			if b.Lo <= last || b.Count == 0 {
				t.Fatalf("of %v: bucket %+v after %d", vs, b, last)
			}
			last = b.Hi
			n += b.Count
		}
		if n != h.Count() {
			t.Fatalf("buckets of %v hold %d values, want %d", vs, n, len(vs))
		}
	})
}

// TestQuantileRank holds the rank against exact arithmetic: a quantile of
// hundredths times a count must not be rounded up to the next value.
func TestQuantileRank(t *testing.T) {
	for n := int64(1); n <= 1000; n++ {
		h := hist.New()
		for v := range n {
			h.Record(v)
		}
		for c := range int64(101) {
			want := max(0, (c*n+99)/100-1)
			if got := h.Quantile(float64(c) / 100); got != want {
				t.Fatalf("Quantile(%d/100) of 0 to %d = %d, want %d", c, n-1, got, want)
			}
		}
	}
}

func TestQuantileOutside(t *testing.T) {
	h := record(1, 2, 3)
	for _, c := range []struct {
		q    float64
		want int64
	}{{-1, 1}, {0, 1}, {math.NaN(), 1}, {1, 3}, {1.5, 3}, {math.Inf(1), 3}} {
		if got := h.Quantile(c.q); got != c.want {
			t.Errorf("Quantile(%v) of 1, 2, 3 = %d, want %d", c.q, got, c.want)
		}
	}
}

func TestMergeAndSub(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := values(50).Draw(t, "a"), values(50).Draw(t, "b")
		both := record(slices.Concat(a, b)...)
		h, part := record(a...), record(b...)
		h.Merge(part)
		if !h.Equal(both) || h.Min() != both.Min() || h.Max() != both.Max() || h.Mean() != both.Mean() {
			t.Fatalf("merging %v and %v differs from recording both", a, b)
		}
		if !part.Equal(record(b...)) {
			t.Fatalf("merging changed %v", b)
		}
		if err := h.Sub(part); err != nil || !h.Equal(record(a...)) {
			t.Fatalf("taking %v out again: %v, want the histogram of %v", b, err, a)
		}
		if got, want := h.Mean(), record(a...).Mean(); got != want {
			t.Fatalf("mean after taking %v out again = %v, want %v", b, got, want)
		}
		lo, hi := slices.Min(a), slices.Max(a)
		if h.Min() > lo || float64(lo-h.Min()) > float64(lo)/1000 || h.Max() < hi || float64(h.Max()-hi) > float64(hi)/1000 {
			t.Fatalf("extremes after taking %v out again: %d and %d, want about %d and %d", b, h.Min(), h.Max(), lo, hi)
		}
		if err := h.Sub(both); !errors.Is(err, hist.ErrNotContained) || !h.Equal(record(a...)) {
			t.Fatalf("taking %v out of %v: %v, want ErrNotContained and no change", slices.Concat(a, b), a, err)
		}
	})
}

func TestSubAll(t *testing.T) {
	h := record(5, 1e6, hist.Highest+1)
	if err := h.Sub(h.Clone()); err != nil || h.Count() != 0 || h.Max() != 0 || h.Clamped() != 0 || h.Mean() != 0 {
		t.Errorf("a histogram without itself: %v, count %d, max %d, clamped %d", err, h.Count(), h.Max(), h.Clamped())
	}
}

// Values beyond the highest stay counted wherever they go.
func TestClampedMoves(t *testing.T) {
	h := record(5, hist.Highest+1)
	h.Merge(record(hist.Highest+1, hist.Highest+2))
	if h.Clamped() != 3 {
		t.Errorf("after merging 2 to 1: %d clamped, want 3", h.Clamped())
	}
	if err := h.Sub(record(hist.Highest + 1)); err != nil || h.Clamped() != 2 {
		t.Errorf("after taking 1 out: %v, %d clamped, want 2", err, h.Clamped())
	}
	if err := h.Sub(record(hist.Highest)); err != nil || h.Clamped() != 2 {
		t.Errorf("after taking out one that was not clamped: %v, %d clamped, want 2", err, h.Clamped())
	}
}

// What was read from a log knows its values by their buckets. Taking out of it
// what it was written from leaves the sum of what is left, not one below zero.
func TestSubFromLog(t *testing.T) {
	var highest int64
	for b := range record(1e9).Buckets() {
		highest = b.Hi
	}
	entries, err := hist.ReadLog(strings.NewReader(writeLog(t, hist.Entry{Hist: record(1, highest)})))
	if err != nil {
		t.Fatal(err)
	}
	h := entries[0].Hist
	if err := h.Sub(record(highest)); err != nil || h.Count() != 1 || h.Mean() != 1 {
		t.Errorf("1 and %d without the latter: %v, %d of mean %v, want one of 1", highest, err, h.Count(), h.Mean())
	}
}

func TestEmpty(t *testing.T) {
	var h hist.Hist
	h.Merge(hist.New())
	if err := h.Sub(hist.New()); err != nil {
		t.Errorf("nothing without nothing: %v", err)
	}
	if h.Count() != 0 || h.Min() != 0 || h.Max() != 0 || h.Mean() != 0 || h.Quantile(0.5) != 0 || h.CountAbove(0) != 0 {
		t.Errorf("answers of an empty histogram are not all 0: %+v", h)
	}
	for b := range h.Buckets() {
		t.Errorf("empty histogram has bucket %+v", b)
	}
}

func TestNeeded(t *testing.T) {
	for q, want := range map[float64]uint64{
		0: 1, 0.001: 10_000, 0.01: 1000, 0.5: 20, 0.75: 40, 0.9: 100, 0.95: 200, 0.99: 1000, 0.999: 10_000,
		0.9999: 100_000, 0.99999: 1_000_000, 1: 1, -1: 1, 2: 1, math.NaN(): 1,
	} {
		if got := hist.Needed(q); got != want {
			t.Errorf("Needed(%v) = %d, want %d", q, got, want)
		}
	}
	for percent, want := range map[float64]uint64{55: 23, 99.9: 10_000, 99.99: 100_000, 99.999: 1_000_000} {
		if got := hist.Needed(percent / 100); got != want { // divided, not written
			t.Errorf("Needed of p%v = %d, want %d", percent, got, want)
		}
	}
}

func TestOutOfRange(t *testing.T) {
	h := record(-5, hist.Highest, hist.Highest+1, math.MaxInt64)
	h.RecordN(7, 0)
	if h.Count() != 4 || h.Min() != 0 || h.Max() != hist.Highest || h.Clamped() != 2 {
		t.Errorf("count %d, min %d, max %d, clamped %d, want 4, 0, %d, 2", h.Count(), h.Min(), h.Max(), h.Clamped(), hist.Highest)
	}
	h.Reset()
	if h.Count() != 0 || h.Clamped() != 0 || !h.Equal(hist.New()) || h.CountAbove(0) != 0 {
		t.Errorf("after Reset: count %d, clamped %d", h.Count(), h.Clamped())
	}
	h.Record(9)
	if !h.Equal(record(9)) || h.Min() != 9 {
		t.Errorf("9 after Reset: count %d, min %d", h.Count(), h.Min())
	}
}

// What Reset left in a bucket would count again between later extremes.
func TestResetEmptiesBuckets(t *testing.T) {
	h := record(100, 100, 110, 5000)
	h.Reset()
	h.Record(90)
	h.Record(6000)
	if want := record(90, 6000); !h.Equal(want) || h.Quantile(1) != want.Quantile(1) {
		t.Errorf("90 and 6000 after Reset: p100 %d, want %d", h.Quantile(1), want.Quantile(1))
	}
	for b := range h.Buckets() {
		if b.Lo > 90 && b.Hi < 6000 {
			t.Errorf("after Reset bucket %+v is left over", b)
		}
	}
}

func TestMean(t *testing.T) {
	h := record(1000, 2000, 3000)
	if got := h.Mean(); got != 2000 {
		t.Errorf("Mean of 1000, 2000, 3000 = %v, want 2000", got)
	}
}

// TestSumDoesNotOverflow adds up more nanoseconds than 64 bits hold.
func TestSumDoesNotOverflow(t *testing.T) {
	h := hist.New()
	want := new(big.Int)
	for _, c := range []struct {
		v int64
		n uint64
	}{{hist.Highest, 1 << 61}, {hist.Highest - 1, 1 << 60}, {3, 1 << 62}, {1e9, 123456789}} {
		h.RecordN(c.v, c.n)
		want.Add(want, new(big.Int).Mul(big.NewInt(c.v), new(big.Int).SetUint64(c.n)))
	}
	f, _ := new(big.Float).SetInt(want).Float64()
	if got := h.Mean() * float64(h.Count()); math.Abs(got/f-1) > 1e-15 {
		t.Errorf("sum = %v, want %v", got, f)
	}
}

func TestEqual(t *testing.T) {
	a := record(1, 5000, 1e9)
	for _, c := range []struct {
		name string
		b    *hist.Hist
		want bool
	}{
		{"itself", a, true},
		{"a clone", a.Clone(), true},
		{"the same buckets", record(1, 5001, 1e9), true},
		{"another bucket", record(1, 6000, 1e9), false},
		{"one less", record(1, 5000), false},
		{"other counts", record(1, 1, 1e9), false},
		{"nothing", hist.New(), false},
	} {
		if got := a.Equal(c.b); got != c.want || c.b.Equal(a) != c.want {
			t.Errorf("equal to %s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCloneShares(t *testing.T) {
	a := record(1, 5000)
	b := a.Clone()
	b.Record(5000)
	if !a.Equal(record(1, 5000)) {
		t.Error("recording in a clone changed the original")
	}
}

// TestAllocations keeps the budgets: nothing a value once its octave has been
// met, and little for a histogram that holds little.
func TestAllocations(t *testing.T) {
	h := record(12345)
	if n := testing.AllocsPerRun(100, func() { h.Record(12345); h.RecordN(12400, 3) }); n != 0 {
		t.Errorf("recording allocates %v times, want 0", n)
	}
	part := record(12346)
	if n := testing.AllocsPerRun(100, func() { h.Merge(part); h.Quantile(0.99); _ = h.Sub(part); h.CountAbove(1) }); n != 0 {
		t.Errorf("merging and asking allocate %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() { record(1e6, 1.5e6).Reset() }); n > 3 {
		t.Errorf("a histogram of two octaves takes %v allocations, want 3", n)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte{0, 1, 2, 255, 128, 7}, 0.5)
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 1}, 0.99)
	f.Fuzz(func(t *testing.T, data []byte, q float64) {
		var vs []int64
		for i := 0; i+2 <= len(data); i += 2 { // a mantissa and an exponent each
			vs = append(vs, int64(data[i])<<(data[i+1]%34))
		}
		if len(vs) == 0 || !(q >= 0 && q <= 1) {
			return
		}
		h := record(vs...)
		slices.Sort(vs)
		want := vs[max(0, int(math.Ceil(q*float64(len(vs))*(1-0x1p-51)))-1)]
		if got := h.Quantile(q); got < want || float64(got-want) > float64(want)/1000 {
			t.Errorf("Quantile(%v) of %v = %d, want %d, or up to 0.1 %% above", q, vs, got, want)
		}
	})
}
