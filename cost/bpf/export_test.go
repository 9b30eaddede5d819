//go:build linux && amd64

package bpf

import (
	"errors"
	"time"
)

// StartUnmended is Start without the repair of stacks: what following frame
// pointers alone gives.
func StartUnmended(o Options) (*Sampler, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	s.mend = false
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// Toggle stops the clock or lets it go on.
func (s *Sampler) Toggle(on bool) error { return s.clock.run(on) }

// CPUOf is the CPU that a process has used.
func CPUOf(pid int) (time.Duration, error) { return cpuOf(pid) }
