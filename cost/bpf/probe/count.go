package probe

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tarehq/tare/stats"
)

// Counted is how many requests a process answered in some windows of the time.
type Counted struct {
	Requests float64
	CPU      time.Duration // of the process in these windows, without that of the probes
	// Margin is half the width of the 95 % interval of Requests/CPU, as a share of it:
	// it comes of having looked at windows alone, and of not knowing the probes' own
	// part of the CPU better than by half.
	Margin  float64
	Windows int
	During  time.Duration // all windows taken together
}

// CountShare is the part of the time for which requests are counted.
const CountShare = 0.1

// span is a stretch of time of which one window is looked at.
type span struct{ from, long, window time.Duration }

// spanAt is the one that begins at a moment of so long a time, in which there are so many; for
// 0 it is about thirty, and one a second at least.
func spanAt(from, of time.Duration, spans int) span {
	const least, most, usual = 100 * time.Millisecond, time.Second, 30
	s := span{from: from, long: max(of/time.Duration(cmp.Or(spans, usual)), least)}
	if spans == 0 {
		s.long = min(s.long, most)
	}
	s.window = time.Duration(CountShare * float64(s.long))
	return s
}

// begin is a moment at random for the window to begin at.
func (s span) begin() time.Duration { return s.from + rand.N(s.long-s.window) }

// seen is what was seen in a window.
type seen struct {
	requests float64
	cpu      float64 // nanoseconds, without that of the probes
}

// ratioOf estimates requests per nanosecond of CPU by the ratio of their sums, and its
// margin as a share of it by the windows' residuals (Cochran, Sampling Techniques, 3rd
// edition, section 6.4). CPU per request is much steadier than requests per second.
func ratioOf(windows []seen) (ratio, margin float64) {
	var requests, cpu, squares float64
	for _, w := range windows {
		requests += w.requests
		cpu += w.cpu
	}
	if requests == 0 || cpu <= 0 {
		return 0, 0
	}
	n := float64(len(windows))
	if n == 1 {
		return requests / cpu, 1
	}
	ratio = requests / cpu
	for _, w := range windows {
		e := w.requests - ratio*w.cpu
		squares += e * e
	}
	t := stats.StudentQuantile(0.05, min(n-1, 9)) // of more windows it would be less
	return ratio, t * math.Sqrt(n/(n-1)*squares) / requests
}
