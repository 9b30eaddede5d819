package stats_test

import (
	"math"
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
