package stats_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tarehq/tare/stats"
)

func TestLooksAt(t *testing.T) {
	tests := []struct {
		blocks []int
		want   []int // blocks of the looks; nil: an error
	}{
		{nil, []int{8, 12, 18, 30}},
		{[]int{8, 12, 18, 30}, []int{8, 12, 18, 30}},
		{[]int{6}, []int{6}},
		{[]int{5}, nil},
		{[]int{6, 12}, []int{12}}, // 2⁻⁵ is more than the first look's share
		{[]int{10, 20, 40, 80}, []int{10, 20, 40, 80}},
		{[]int{2, 3, 4}, nil},
		{[]int{8, 8}, nil},
		{[]int{12, 8}, nil},
		{[]int{0, 8}, nil},
		{[]int{-3}, nil},
	}
	for _, tt := range tests {
		got, err := stats.LooksAt(tt.blocks)
		if (err != nil) != (tt.want == nil) {
			t.Errorf("LooksAt(%v) = %v, %v, want looks at %v", tt.blocks, got, err, tt.want)
			continue
		}
		if len(got) != len(tt.want) {
			t.Errorf("LooksAt(%v) = %v, want looks at %v", tt.blocks, got, tt.want)
			continue
		}
		var spent float64
		for i, l := range got {
			spent += l.Alpha
			if l.Blocks != tt.want[i] {
				t.Errorf("LooksAt(%v)[%d] = %v, want %d blocks", tt.blocks, i, l, tt.want[i])
			}
			best := make([]float64, l.Blocks)
			for b := range best {
				best[b] = 1
			}
			if stats.SignedRankInterval(best, l.Alpha).Contains(0) {
				t.Errorf("LooksAt(%v)[%d] = %v: can never exclude 0", tt.blocks, i, l)
			}
		}
		if err == nil && math.Abs(spent-stats.StudyAlpha) > 1e-12 {
			t.Errorf("LooksAt(%v) spends %v, want %v", tt.blocks, spent, stats.StudyAlpha)
		}
	}
}

// A look that was taken early is not taken again: however often a study is stopped between
// two looks and gone on with, all looks together spend what one study may.
func TestLooksTakenEarly(t *testing.T) {
	judgedAt := func(looks []stats.Look, n int) (alpha float64, left bool) {
		for _, l := range looks {
			if n <= l.Blocks {
				return l.Alpha, true
			}
		}
		return 0, false
	}
	for _, every := range []int{1, 2, 5} {
		var early []int
		spent, n := 0.0, 8
		for {
			looks, err := stats.LooksAt(nil, early...)
			if err != nil {
				t.Fatal(err)
			}
			alpha, left := judgedAt(looks, n)
			if !left {
				break
			}
			spent += alpha
			early, n = append(early, n), n+every
		}
		if spent > stats.StudyAlpha+1e-12 || len(early) < 3 {
			t.Errorf("stopped after %v blocks: the looks spend %v, want at most %v", early, spent, stats.StudyAlpha)
		}
	}
	looks, err := stats.LooksAt(nil, 10, 11)
	want := []stats.Look{{Blocks: 8, Alpha: 0.010}, {Blocks: 10, Alpha: 0.010}, {Blocks: 11, Alpha: 0.012}, {Blocks: 30, Alpha: 0.018}}
	if err != nil || !slices.Equal(looks, want) {
		t.Errorf("stopped after 10 and 11 blocks: got %v, %v, want %v", looks, err, want)
	}
	if again := stats.Looks(); again[1].Blocks != 12 {
		t.Errorf("the planned looks have changed: %v", again)
	}
}
