package stats

import (
	"cmp"
	"math"
	"slices"
)

// Rank is the place of an arm among others, as far as the data tell.
type Rank struct {
	Lo   int `json:"lo"` // best and worst place that the data leave possible, from 1
	Hi   int `json:"hi"`
	Tier int `json:"tier"` // from 1, the best
}

// RankIntervals ranks k arms by one metric. perBlock holds, a row a block, the
// values of the k arms in fixed order on the scale of comparison (logarithms
// for ratios), NaN where one is missing.
//
// Every arm is compared with every other over the blocks that have both; a
// pair is distinguished if [Holm]'s procedure over all pairs rejects at r.Alpha,
// whenever one looks if r.Anytime, and the effect is beyond r.Threshold and
// r.Floor. An arm's rank runs from one more than the number of arms found better
// to k less the number found worse; all these statements hold together with
// probability 1 − alpha. A tier is a set of arms linked by pairs that were not
// distinguished, so any two arms of different tiers were distinguished. Fewer
// blocks than [BlocksForFamily] of k(k−1)/2 distinguish no pair.
func RankIntervals(perBlock [][]float64, r Rule) []Rank {
	k := 0
	for _, row := range perBlock {
		k = max(k, len(row))
	}
	beats := tellApart(perBlock, k, r)
	ranks := make([]Rank, k)
	for a := range ranks {
		ranks[a] = Rank{Lo: 1, Hi: k}
		for b := range k {
			if beats[b][a] {
				ranks[a].Lo++
			}
			if beats[a][b] {
				ranks[a].Hi--
			}
		}
	}
	setTiers(ranks, beats)
	return ranks
}

// tellApart says which of k arms is better than which.
func tellApart(perBlock [][]float64, k int, r Rule) (beats [][]bool) {
	type pair struct{ a, b int }
	var pairs []pair
	var p, effects []float64
	beats = make([][]bool, k)
	for a := range k {
		beats[a] = make([]bool, k)
		for b := range a {
			c := Compare(differences(perBlock, a, b), Rule{Alpha: r.Alpha, Anytime: r.Anytime})
			pairs = append(pairs, pair{a, b})
			p = append(p, c.P)
			effects = append(effects, c.Effect)
		}
	}
	alpha := r.Alpha
	if alpha == 0 {
		alpha = StudyAlpha
	}
	for i, level := range Holm(p, alpha) {
		if level == 0 || !(math.Abs(effects[i]) > max(r.Threshold, r.Floor)) {
			continue
		}
		a, b := pairs[i].a, pairs[i].b
		if (effects[i] > 0) != r.HigherIsBetter {
			a, b = b, a
		}
		beats[a][b] = true
	}
	return beats
}

// differences are those of columns a and b in the rows that have both.
func differences(perBlock [][]float64, a, b int) []float64 {
	d := make([]float64, 0, len(perBlock))
	for _, row := range perBlock {
		if a < len(row) && b < len(row) {
			d = append(d, row[a]-row[b])
		}
	}
	return finite(d)
}

// setTiers joins arms that were not distinguished, directly or through others,
// and numbers the groups from the best. Between two groups every arm of one
// beats every arm of the other or is beaten by it; the mean place settles the
// order even where the directions do not agree.
func setTiers(ranks []Rank, beats [][]bool) {
	group := make([]int, len(ranks))
	for a := range group {
		group[a] = a
	}
	for a := range ranks {
		for b := range a {
			if beats[a][b] || beats[b][a] || group[a] == group[b] {
				continue
			}
			from, to := group[b], group[a]
			for c := range group {
				if group[c] == from {
					group[c] = to
				}
			}
		}
	}
	place := map[int]float64{} // group → mean place
	size := map[int]float64{}
	for a, r := range ranks {
		place[group[a]] += float64(r.Lo + r.Hi)
		size[group[a]]++
	}
	var order []int
	for g := range place {
		place[g] /= size[g]
		order = append(order, g)
	}
	slices.SortFunc(order, func(g, h int) int { return cmp.Or(cmp.Compare(place[g], place[h]), cmp.Compare(g, h)) })
	for a := range ranks {
		ranks[a].Tier = slices.Index(order, group[a]) + 1
	}
}
