package pprof

import (
	"errors"
	"fmt"
	"io"

	"github.com/google/pprof/profile"
)

// Since returns what an allocation profile has more than an earlier one of the
// same process: what was allocated between the two.
func (p *Profile) Since(earlier *Profile) (*Profile, error) {
	if p.Kind != Allocs || earlier.Kind != Allocs {
		return nil, fmt.Errorf("subtracting a %s profile from a %s profile: only allocations add up since the program began", earlier.Kind, p.Kind)
	}
	less := earlier.raw.Copy()
	less.Scale(-1)
	raw, err := profile.Merge([]*profile.Profile{p.raw.Copy(), less})
	if err != nil {
		return nil, fmt.Errorf("subtracting a profile: %w", err)
	}
	raw.TimeNanos, raw.DurationNanos = earlier.raw.TimeNanos, p.raw.TimeNanos-earlier.raw.TimeNanos
	if raw.DurationNanos < 0 {
		return nil, errors.New("subtracting a profile: it is the later one")
	}
	return convert(raw, Allocs)
}

// Write writes the profile as it was read, compressed.
func (p *Profile) Write(w io.Writer) error { return p.raw.Write(w) }
