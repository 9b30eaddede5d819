//go:build linux && (amd64 || arm64)

package probe

import (
	"errors"
	"fmt"
	"time"
)

// Brake slows one owner down, on and off. Its probes stay where they are from
// NewBrake to Close, so that on differs from off by the time taken alone. It is
// not safe for concurrent use.
type Brake struct {
	d *device
	// Counted reports whether requests are counted where they begin; otherwise a
	// call of the owner counts as one.
	Counted bool
}

// Slots of what is counted: the owner's calls, nanoseconds taken, requests.
const (
	slowed = iota
	taken
	requests
	slots
)

// NewBrake places probes on an owner; it takes nothing until On.
func (t *Target) NewBrake(owner Watched) (*Brake, error) {
	if owner.Reason != "" {
		return nil, refusals([]Watched{owner})
	}
	d, err := newDevice(t, 0)
	if err != nil {
		return nil, err
	}
	b := &Brake{d: d}
	begins := t.pushes(beginning[:])
	b.Counted = len(begins) > 0
	ids := make([]uint64, len(begins))
	for i := range ids {
		ids[i] = requests
	}
	err = d.attach(d.Slow, owner.pushes, make([]uint64, len(owner.pushes)))
	if err == nil {
		err = d.attach(d.Count, begins, ids)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return b, nil
}

// On has every call of the owner take d longer, for at most the time given:
// after that it takes nothing, whatever has become of this process.
func (b *Brake) On(d, most time.Duration) error {
	if d <= 0 || d > Slowest {
		return fmt.Errorf("slowing calls down by %s: at most %s is allowed", d, Slowest)
	}
	until, err := clockIn(most)
	if err != nil {
		return err
	}
	return errors.Join(b.d.SlowUntil.Set(until), b.d.SlowNs.Set(uint64(d)))
}

// Off has it take nothing.
func (b *Brake) Off() error { return b.d.SlowNs.Set(uint64(0)) }

// Read returns what was counted since NewBrake.
func (b *Brake) Read() (Reading, error) {
	at, cpu, err := b.d.clock()
	if err != nil {
		return Reading{}, err
	}
	n, err := b.d.counts(slots)
	if err != nil {
		return Reading{}, err
	}
	r := Reading{At: at, Requests: n[requests], Calls: n[slowed], Taken: time.Duration(n[taken]), CPU: cpu}
	if !b.Counted {
		r.Requests = r.Calls
	}
	return r, nil
}

// Close takes the probes away.
func (b *Brake) Close() error { return errors.Join(b.Off(), b.d.Close()) }
