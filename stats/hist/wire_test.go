package hist_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tarehq/tare/stats/hist"
)

// equal reports whether two histograms agree in all that they answer.
func equal(a, b *hist.Hist) bool {
	return a.Equal(b) && a.Min() == b.Min() && a.Max() == b.Max() && a.Mean() == b.Mean() && a.Count() == b.Count() && a.Clamped() == b.Clamped()
}

// What is appended by one and merged by another is as if one had recorded all.
func TestAppendMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := values(50).Draw(t, "a"), values(50).Draw(t, "b")
		if rapid.Bool().Draw(t, "clamped") {
			b = append(b, hist.Highest+1)
		}
		h, part := record(a...), record(b...)
		if err := h.MergeAppended(part.Append(nil)); err != nil {
			t.Fatalf("merging %v: %v", b, err)
		}
		if want := record(append(a, b...)...); !equal(h, want) {
			t.Fatalf("merging %v to %v differs from recording both: mean %v, want %v", b, a, h.Mean(), want.Mean())
		}
	})
}

func TestAppendEmpty(t *testing.T) {
	h := record(7)
	if err := h.MergeAppended(hist.New().Append(nil)); err != nil || !equal(h, record(7)) {
		t.Errorf("nothing added to 7: %v, count %d", err, h.Count())
	}
}

// A histogram that was damaged on its way changes nothing.
func TestMergeAppendedRefuses(t *testing.T) {
	whole := record(5, 1e6, 2e9).Append(nil)
	for what, b := range map[string][]byte{
		"nothing":         nil,
		"half":            whole[:len(whole)/2],
		"totals alone":    whole[:6],
		"another total":   append([]byte{4}, whole[1:]...),
		"another minimum": append([]byte{3, 9}, whole[2:]...),
		"more counters":   append(append([]byte{}, whole...), 2),
		"behind empty":    {0, 0},
		"unending number": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		h := record(1, 2)
		if err := h.MergeAppended(b); err == nil || !unchanged(h, 1, 2) {
			t.Errorf("%s: got error %v and %d values, want an error and 2", what, err, h.Count())
		}
	}
}

// unchanged reports whether a histogram holds these values and no others, not even outside its
// extremes.
func unchanged(h *hist.Hist, values ...int64) bool {
	want := record(values...)
	if !equal(h, want) {
		return false
	}
	for _, edge := range []int64{0, hist.Highest} {
		h.Record(edge)
		want.Record(edge)
	}
	return equal(h, want)
}

func FuzzMergeAppended(f *testing.F) {
	f.Add(record(5, 1e6, 2e9).Append(nil))
	f.Add(record(hist.Highest+1, 0).Append(nil))
	f.Add(hist.New().Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := record(7, 1e9)
		if h.MergeAppended(b) != nil {
			if !unchanged(h, 7, 1e9) {
				t.Fatalf("%x: refused, and values were added: %d", b, h.Count())
			}
			return
		}
		again := hist.New()
		if err := again.MergeAppended(h.Append(nil)); err != nil || !equal(h, again) {
			t.Fatalf("%x: does not come back: %v", b, err)
		}
	})
}
