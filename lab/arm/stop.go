package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	grace = time.Second     // between asking an arm to end and killing it, if nothing is said
	reap  = 5 * time.Second // for the kernel to end what was killed
)

// Stop ends the arm, everything in its process group and what descends from it:
// SIGTERM to the arm, after StartOptions.Grace, or as soon as ctx is done, SIGKILL to
// all. When it returns without error the processes are gone, the port is free and the
// temporary files are removed. Further calls return what the first did.
func (a *Process) Stop(ctx context.Context) error {
	a.stop.Do(func() {
		if a.cmd != nil {
			a.stopErr = a.end(ctx)
		}
	})
	return a.stopErr
}

// Killed reports whether Stop had to kill the arm, which did not end when asked to.
func (a *Process) Killed() bool { return a.killed.Load() }

func (a *Process) end(ctx context.Context) error {
	away, unseen := a.strays()
	if err := terminate(a.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping the arm: %w", err)
	}
	select {
	case <-a.exited:
	case <-time.After(a.grace):
		a.killed.Store(true)
	case <-ctx.Done():
		a.killed.Store(true)
	}
	err := errors.Join(unseen, a.guard.kill(), away.kill())
	select {
	case <-a.exited:
	case <-time.After(reap):
		return fmt.Errorf("stopping the arm: process %d does not end, although killed", a.PID())
	}
	err = errors.Join(err, a.runCommand(context.WithoutCancel(ctx), a.after))
	return errors.Join(err, a.release())
}

// release frees what a start has taken, however far it came.
func (a *Process) release() error {
	var err error
	if a.guard != nil {
		err = a.guard.end()
	}
	for _, p := range a.pumps {
		p.close()
	}
	if a.cmd != nil {
		if f, ok := a.cmd.Stdout.(*os.File); ok {
			f.Close() // closed already if it was a pipe
		}
	}
	if a.dir != "" {
		err = errors.Join(err, os.RemoveAll(a.dir))
	}
	return err
}
