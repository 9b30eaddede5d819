//go:build !linux

package arm

import "fmt"

// Usage needs Linux.
func (a *Process) Usage(bool) (Usage, error) {
	return Usage{}, fmt.Errorf("reading CPU and memory of a process needs Linux's /proc: %w", ErrNotSupported)
}

// Sockets needs Linux.
func (a *Process) Sockets() (Sockets, error) {
	return nil, fmt.Errorf("counting sockets by state needs Linux's sock_diag: %w", ErrNotSupported)
}

func peakOf(int) uint64 { return 0 }

// strays are not looked for but on Linux.
type strays struct{}

func (a *Process) strays() (strays, error) { return strays{}, nil }

func (strays) kill() error { return nil }
