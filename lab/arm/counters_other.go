//go:build !linux

package arm

import "fmt"

// Counters count what the processor sees of a process; on Linux alone.
type Counters struct{}

// OpenCounters returns ErrNotSupported.
func OpenCounters(int) (*Counters, error) {
	return nil, fmt.Errorf("hardware counters: %w: Linux has them", ErrNotSupported)
}

// Hits is never called.
func (*Counters) Hits() (float64, error) { return 0, ErrNotSupported }

// Close does nothing.
func (*Counters) Close() {}
