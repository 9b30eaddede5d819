//go:build !linux

package arm

import "fmt"

// pin can only leave the CPUs free.
func pin(cpus []int) (unpin func(), err error) {
	if len(cpus) > 0 {
		return nil, fmt.Errorf("pinning to CPUs needs Linux's sched_setaffinity: %w", ErrNotSupported)
	}
	return func() {}, nil
}
