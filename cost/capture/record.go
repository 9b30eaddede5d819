package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tarehq/tare/load"
)

// Recording says how to record an execution trace that may be too long for memory.
type Recording struct {
	For      time.Duration
	Samples  bool              // profile the CPU meanwhile, so that the trace says where goroutines ran
	Load     *load.Options     // requests to send meanwhile; nil: none
	To       io.Writer         // receives the trace as it comes
	Progress func(line string) // receives a line for people before it begins; nil: nobody reads it
}

// Record records an execution trace of a service that was found by its profiles. An
// interrupted one is kept as far as it came. The warnings are caveats of the trace.
func (r Recording) Record(ctx context.Context, t *Target) (warnings []error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	around := newRun(t, Options{Load: r.Load, Progress: r.Progress})
	if err := around.startLoad(ctx); err != nil {
		return nil, err
	}
	price := priceOfTrace
	if r.Samples {
		price = priceOfBoth
	}
	around.say("tracing %s for %s; expected to cost it %s of the CPU it uses", t.Profiles, r.For, price)
	sampled := make(chan error, 1)
	go func() {
		var err error
		if r.Samples {
			_, err = t.Profiles.CPU(ctx, r.For)
		}
		sampled <- err
	}()
	err = t.Profiles.TraceTo(ctx, r.For, r.To)
	interrupted := err != nil && ctx.Err() != nil
	if err != nil && !interrupted {
		cancel()
		<-sampled
		return nil, &ProfileError{err}
	}
	if interrupted {
		warnings = append(warnings, errors.New("interrupted: what was seen until then is shown"))
	}
	if err := <-sampled; err != nil && !interrupted {
		warnings = append(warnings, fmt.Errorf("no CPU profile with the trace, so it shows only partly where requests ran: %w", err))
	}
	if around.load == nil {
		return warnings, nil
	}
	amiss, err := around.load.End()
	if err != nil { // such as that nothing was answered: why, is in the trace
		amiss = append(amiss, err)
	}
	return append(warnings, amiss...), nil
}
