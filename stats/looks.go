package stats

import (
	"fmt"
	"math"
	"slices"
)

// StudyAlpha is the probability, over all looks of a study together, of
// finding an effect where there is none.
const StudyAlpha = 0.05

// Look is a number of complete blocks after which a study may stop, with the
// share of [StudyAlpha] that it spends.
type Look struct {
	Blocks int
	Alpha  float64 // two-sided
}

// Looks are the planned looks of a study that declares none: 8, 12, 18 and 30
// blocks. Their alphas add up to [StudyAlpha], so by Bonferroni's inequality
// stopping at whichever look decides keeps the promise.
func Looks() []Look {
	return []Look{{8, 0.010}, {12, 0.010}, {18, 0.012}, {30, 0.018}}
}

// LooksAt are looks after those numbers of blocks, ascending; nil gives
// [Looks]. Half of [StudyAlpha] is shared equally and half in proportion to the
// blocks, so that an early look can still find a large effect and the last one
// keeps most of the power. A look with too few blocks to reject at its share
// (2^(1−n) > alpha) is left out, and its share goes to the next one. It is an
// error if the numbers do not rise, or if the last look could not reject
// either.
//
// A resumed study was looked at where it had stopped: after each of these early numbers
// of blocks, ascending. Each spent the share of the next look, and takes its place.
func LooksAt(blocks []int, early ...int) ([]Look, error) {
	looks, err := planLooks(blocks)
	for _, n := range early {
		if i := slices.IndexFunc(looks, func(l Look) bool { return l.Blocks >= n }); i >= 0 {
			looks[i].Blocks = n
		}
	}
	return looks, err
}

func planLooks(blocks []int) ([]Look, error) {
	planned := Looks()
	if len(blocks) == 0 || slices.EqualFunc(blocks, planned, func(n int, l Look) bool { return n == l.Blocks }) {
		return planned, nil
	}
	total := 0
	for i, n := range blocks {
		if n < 1 || i > 0 && n <= blocks[i-1] {
			return nil, fmt.Errorf("planning looks at %v: numbers of blocks must be positive and rise", blocks)
		}
		total += n
	}
	var looks []Look
	var carried float64
	for _, n := range blocks {
		share := StudyAlpha/2*(1/float64(len(blocks))+float64(n)/float64(total)) + carried
		if leastAlpha(n) > share {
			carried = share
			continue
		}
		looks = append(looks, Look{n, share})
		carried = 0
	}
	if carried > 0 {
		return nil, fmt.Errorf("planning looks at %v: %d blocks can never exclude 0 at alpha %.3g: the last look needs %d",
			blocks, blocks[len(blocks)-1], carried, BlocksForFamily(1, carried))
	}
	return looks, nil
}

// leastAlpha is the smallest two-sided alpha at which n blocks can reject.
func leastAlpha(n int) float64 { return math.Ldexp(1, 1-n) }
