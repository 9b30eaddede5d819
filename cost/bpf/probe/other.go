//go:build !(linux && (amd64 || arm64))

package probe

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/tarehq/tare/cost"
)

// Target is a running process written in Go.
type Target struct{}

// Watch is a set of owners that is about to be watched.
type Watch struct{}

// Counter counts a process's requests.
type Counter struct{ Spans int }

// Brake slows one owner down.
type Brake struct{ Counted bool }

func missing() error {
	return fmt.Errorf("probes need Linux on amd64 or arm64, and this is %s on %s: %w", runtime.GOOS, runtime.GOARCH, cost.ErrNotSupported)
}

// Calibrate says what is missing.
func Calibrate(context.Context) (Price, error) { return Price{}, missing() }

// Open says what is missing.
func Open(int) (*Target, error) { return nil, missing() }

// Close does nothing.
func (t *Target) Close() error { return nil }

// CPU says what is missing.
func (t *Target) CPU() (time.Duration, error) { return 0, missing() }

// Sampled does nothing.
func (t *Target) Sampled([]cost.Stack) {}

// Owners says what is missing.
func (t *Target) Owners(context.Context, []string, time.Duration) ([]Watched, error) {
	return nil, missing()
}

// NewWatch says what is missing.
func (t *Target) NewWatch([]Watched, Price) (*Watch, error) { return nil, missing() }

// NewCounter says what is missing.
func (t *Target) NewCounter(Price) (*Counter, error) { return nil, missing() }

// NewBrake says what is missing.
func (t *Target) NewBrake(Watched) (*Brake, error) { return nil, missing() }

// Run says what is missing.
func (c *Counter) Run(context.Context, time.Duration) (Counted, error) { return Counted{}, missing() }

// Close does nothing.
func (c *Counter) Close() error { return nil }

// Close does nothing.
func (w *Watch) Close() error { return nil }

// Look says what is missing.
func (w *Watch) Look(context.Context, time.Duration) (*Forecast, error) { return nil, missing() }

// Run says what is missing.
func (w *Watch) Run(context.Context, Options) (*Measurement, error) { return nil, missing() }

// On says what is missing.
func (b *Brake) On(_, _ time.Duration) error { return missing() }

// Off does nothing.
func (b *Brake) Off() error { return nil }

// Read says what is missing.
func (b *Brake) Read() (Reading, error) { return Reading{}, missing() }

// Close does nothing.
func (b *Brake) Close() error { return nil }
