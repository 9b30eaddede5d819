package pprof

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/pprof/profile"
)

// ErrImplausible says that a profile's numbers cannot be what they are said to be.
var ErrImplausible = errors.New("implausible")

const (
	longest = 366 * 24 * time.Hour // that one profile is recorded for
	largest = 1 << 60              // nanoseconds, bytes or objects: 36 years of CPU, an exbibyte
)

// plausible refuses numbers that no program can have spent.
func plausible(raw *profile.Profile, columns ...int) error {
	if d := time.Duration(raw.DurationNanos); d < 0 || d > longest {
		return fmt.Errorf("%w: recorded for %.0f s", ErrImplausible, d.Seconds())
	}
	for _, c := range columns {
		var more, less float64
		for _, s := range raw.Sample {
			v := float64(s.Value[c])
			more += max(v, 0)
			less += max(-v, 0)
		}
		// A little less than nothing is what rounding leaves of two profiles' difference.
		if less > more/100 {
			return fmt.Errorf("%w: %.3g of its %s are negative and %.3g positive: it is the difference of two profiles, or broken", ErrImplausible, less, raw.SampleType[c].Unit, more)
		}
		if more > largest {
			return fmt.Errorf("%w: its %s add up to %.3g", ErrImplausible, raw.SampleType[c].Unit, more)
		}
	}
	return nil
}

// expand is how many frames all stacks have together, those of functions that were
// inlined among them.
func expand(raw *profile.Profile) int {
	n := 0
	for _, s := range raw.Sample {
		for _, at := range s.Location {
			if n += max(1, len(at.Line)); n > mostFrames {
				return n
			}
		}
	}
	return n
}

// checkDuration refuses a profile that was recorded for another time than was asked for.
// A service may need a while to begin and to end.
func (p *Profile) checkDuration(asked time.Duration) error {
	if p.Duration == 0 || p.Duration >= asked/2 && p.Duration <= asked+patience {
		return nil
	}
	return fmt.Errorf("%w: recorded for %s, though %s was asked for", ErrImplausible, p.Duration.Round(time.Millisecond), asked)
}
