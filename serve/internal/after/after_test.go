package after_test

import (
	"slices"
	"testing"

	"github.com/tarehq/tare/serve/internal/after"
)

// TestList has each function be called that was not taken out, whichever was.
func TestList(t *testing.T) {
	for out := range 8 { // bits: which of three
		var l after.List
		var called, want []int
		entries := make([]*after.Entry, 3)
		for i := range entries {
			entries[i] = l.Add(func() { called = append(called, i) })
		}
		for i, e := range entries {
			if out&(1<<i) == 0 {
				want = append(want, i)
			} else if !e.Remove() || e.Remove() {
				t.Errorf("%03b: taking %d out twice did not tell true and false", out, i)
			}
		}
		l.Take().Call()
		if slices.Sort(called); !slices.Equal(called, want) {
			t.Errorf("%03b: called %v, want %v", out, called, want)
		}
		for _, e := range entries {
			if e.Remove() {
				t.Errorf("%03b: what was taken is in the list", out)
			}
		}
		if l.Take() != nil {
			t.Errorf("%03b: the list was not emptied", out)
		}
	}
}
