//go:build !(linux && (amd64 || arm64))

package bpf

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tarehq/tare/cost"
)

// Sampler watches processes.
type Sampler struct{}

func missing() error {
	return fmt.Errorf("sampling a process from outside needs Linux on amd64 or arm64, and this is %s on %s: %w", runtime.GOOS, runtime.GOARCH, cost.ErrNotSupported)
}

// Start says what is missing.
func Start(Options) (*Sampler, error) { return nil, missing() }

// Verify says what is missing.
func Verify() error { return missing() }

// CPU says what is missing.
func CPU(int) (time.Duration, error) { return 0, missing() }

// SystemMonitor says what is missing.
func SystemMonitor(int) (time.Duration, error) { return 0, missing() }

// Ended is never closed.
func (s *Sampler) Ended() <-chan struct{} { return nil }

// Take says what is missing.
func (s *Sampler) Take() (*Profile, error) { return nil, missing() }

// Pace says what is missing.
func (s *Sampler) Pace(hz, switches int, fetch time.Duration) error { return missing() }

// Stop says what is missing.
func (s *Sampler) Stop() (*Profile, error) { return nil, missing() }
