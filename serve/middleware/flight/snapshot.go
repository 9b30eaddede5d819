package flight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
)

var (
	errTooLarge  = errors.New("the snapshot is more than twice Options.MaxBytes")
	errAbandoned = errors.New("it was not taken in time: closing the recorder")
)

// snapshot writes what the recorder remembers. The Sink is the user's and runs on a
// goroutine apart, behind a pipe: whatever it does, the recorder can be stopped.
func (r *Recorder) snapshot(found Request) error {
	from, to := io.Pipe()
	defer context.AfterFunc(r.impatient, func() { from.CloseWithError(errAbandoned) })()
	delivered := make(chan error, 1)
	go r.deliver(found, from, delivered)
	_, err := r.fr.WriteTo(&limited{w: to, left: 2 * min(r.o.MaxBytes, math.MaxInt64/2)})
	to.CloseWithError(err)
	select {
	case err := <-delivered:
		return err
	case <-r.impatient.Done():
		return errAbandoned
	}
}

// deliver hands a snapshot to the Sink and tells how that ended, also if the Sink
// panics or ends the goroutine.
func (r *Recorder) deliver(found Request, from *io.PipeReader, delivered chan<- error) {
	err := errors.New("Options.Sink ended its goroutine")
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("Options.Sink panicked: %v\n%s", v, debug.Stack())
		}
		from.CloseWithError(err) // writing ends as well
		delivered <- err
	}()
	err = r.fill(found, from)
}

// fill copies a snapshot to where the Sink says.
func (r *Recorder) fill(found Request, from io.Reader) error {
	out, err := r.o.Sink(found)
	if err != nil {
		return err
	}
	if out == nil {
		return errors.New("Options.Sink returned neither a writer nor an error")
	}
	_, err = io.Copy(out, from)
	if f, ok := out.(*file); ok {
		return f.finish(err)
	}
	return errors.Join(err, out.Close())
}

// limited refuses what is too much.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, errTooLarge
	}
	n, err := l.w.Write(p)
	l.left -= int64(n)
	return n, err
}
