package load

import "context"

// FindMaxWith is FindMax with run in the place of Run.
func FindMaxWith(ctx context.Context, so SearchOptions, run func(context.Context, Options) (*Result, error)) (*SearchResult, error) {
	return findMax(ctx, Options{}, so, run)
}
