package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"

	"github.com/alecthomas/kong"
)

const (
	// windUp is more than a verb takes that ends what it has begun: requests in
	// flight have a second, an arm six, and then there is a report to write.
	windUp = 20 * time.Second
	// finish is more than other verbs take altogether.
	finish = time.Second
	// oneInterruption is how far apart the signals of one may come: timeout(1) sends
	// its to the process and then to the group, a terminal that is closed has the
	// kernel and the shell send theirs.
	oneInterruption = time.Second
)

// interruptible is a context that the first signal to end cancels. One that comes
// after the same interruption ends the process at once: what was measured is on
// disk. A hang-up that is ignored, as under nohup(1), stays so.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(parent, ends...)
	context.AfterFunc(ctx, func() { time.AfterFunc(oneInterruption, stop) })
	return ctx, stop
}

// patience is how long a verb may go on after an interruption: one that is given
// the context has things to end, any other would go on as if nothing were.
func patience(parsed *kong.Context) time.Duration {
	verb := parsed.Selected().Target.Addr().MethodByName("Run").Type()
	for i := range verb.NumIn() {
		if verb.In(i) == reflect.TypeFor[context.Context]() {
			return windUp
		}
	}
	return finish
}

// perform runs a verb. One that hangs, on a pipe that nobody reads or a file
// that nobody writes, is left behind when ctx has ended and patience with it:
// the process is about to end.
func perform(ctx context.Context, patience time.Duration, verb func() error) error {
	done := make(chan error, 1)
	go func() { done <- verb() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return &cli.Failure{Status: cli.ExitInterrupted, Err: fmt.Errorf("interrupted; left behind what did not end within %v", patience)}
	}
}
