package stats_test

import (
	"math"
	"testing"

	"github.com/tarehq/tare/stats"
)

// levels are blocks of arms at those levels with normal noise of standard
// deviation sd.
func levels(blocks int, sd float64, stream uint64, at ...float64) [][]float64 {
	rng := seeded(stream)
	rows := make([][]float64, blocks)
	for b := range rows {
		shared := rng.NormFloat64()
		for _, v := range at {
			rows[b] = append(rows[b], v+shared+sd*rng.NormFloat64())
		}
	}
	return rows
}

func TestRankIntervals(t *testing.T) {
	tests := []struct {
		name string
		rows [][]float64
		rule stats.Rule
		want []stats.Rank
	}{
		{"clear", levels(20, 0.01, 1, 3, 1, 2), stats.Rule{},
			[]stats.Rank{{3, 3, 3}, {1, 1, 1}, {2, 2, 2}}},
		{"clear, higher is better", levels(20, 0.01, 1, 3, 1, 2), stats.Rule{HigherIsBetter: true},
			[]stats.Rank{{1, 1, 1}, {3, 3, 3}, {2, 2, 2}}},
		{"two alike behind one", levels(20, 0.01, 2, 1, 2, 2), stats.Rule{},
			[]stats.Rank{{1, 1, 1}, {2, 3, 2}, {2, 3, 2}}},
		{"apart, but inside the band", levels(20, 0.001, 3, 1, 1.005, 2), stats.Rule{Threshold: 0.01},
			[]stats.Rank{{1, 2, 1}, {1, 2, 1}, {3, 3, 2}}},
		{"too few blocks", levels(5, 0.01, 4, 3, 1, 2), stats.Rule{},
			[]stats.Rank{{1, 3, 1}, {1, 3, 1}, {1, 3, 1}}},
		{"clear after seven blocks", levels(7, 0.01, 1, 3, 1, 2), stats.Rule{},
			[]stats.Rank{{3, 3, 3}, {1, 1, 1}, {2, 2, 2}}},
		{"likewise, looked at at any time", levels(7, 0.01, 1, 3, 1, 2), stats.Rule{Anytime: true},
			[]stats.Rank{{1, 3, 1}, {1, 3, 1}, {1, 3, 1}}},
		{"one arm", levels(5, 0.01, 5, 3), stats.Rule{}, []stats.Rank{{1, 1, 1}}},
		{"none", nil, stats.Rule{}, nil},
	}
	for _, tt := range tests {
		got := stats.RankIntervals(tt.rows, tt.rule)
		if len(got) != len(tt.want) {
			t.Errorf("%s: RankIntervals = %v, want %v", tt.name, got, tt.want)
			continue
		}
		for a := range got {
			if got[a] != tt.want[a] {
				t.Errorf("%s: arm %d = %+v, want %+v", tt.name, a, got[a], tt.want[a])
			}
		}
	}
}

// A missing trial costs its pairs one block and nothing else.
func TestRankIntervalsMissing(t *testing.T) {
	rows := levels(20, 0.01, 6, 1, 2, 3)
	rows[3][1] = math.NaN()
	rows[7] = rows[7][:2]
	for a, got := range stats.RankIntervals(rows, stats.Rule{}) {
		if want := (stats.Rank{Lo: a + 1, Hi: a + 1, Tier: a + 1}); got != want {
			t.Errorf("arm %d = %+v, want %+v", a, got, want)
		}
	}
}

// Identical arms are distinguished in at most 5 % of studies, over all pairs.
func TestRankIntervalsFamily(t *testing.T) {
	n := studies() / 4
	wrong := 0
	for i := range n {
		for _, r := range stats.RankIntervals(levels(20, 0.01, 1000+uint64(i), 1, 1, 1, 1, 1), stats.Rule{}) {
			if r.Lo != 1 || r.Hi != 5 {
				wrong++
				break
			}
		}
	}
	if share := float64(wrong) / float64(n); share > allowed(n) {
		t.Errorf("identical arms ranked in %.4f of %d studies, want at most %.4f", share, n, allowed(n))
	}
}
