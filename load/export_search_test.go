package load

import (
	"context"

	"github.com/tarehq/tare/stats/hist"
)

// FindMaxWith is FindMax with run in the place of Run.
func FindMaxWith(ctx context.Context, so SearchOptions, run func(context.Context, Options) (*Result, error)) (*SearchResult, error) {
	return findMax(ctx, Options{}, so, run)
}

// AnswersAfter makes the answers after the end of r those whose times since it are h.
func AnswersAfter(r *Result, h *hist.Hist) { r.countInTime(h) }
