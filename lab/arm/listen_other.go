//go:build !linux

package arm

import "fmt"

// Listening returns ErrNotSupported.
func (a *Process) Listening() ([]string, error) {
	return nil, fmt.Errorf("the kernel is not asked for ports here: have the program listen where TARE_ADDR says: %w", ErrNotSupported)
}
