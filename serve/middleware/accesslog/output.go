package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// output brings lines to the writer.
type output struct {
	mu      sync.Mutex
	waiting []byte // lines
	closed  bool
	o       *Options

	room  sync.Cond // of mu: lines were taken to be written, or the log is closed
	spare []byte    // memory for the next ones
	err   error     // the writer's last

	lost atomic.Uint64
	tell chan struct{} // wakes the writing goroutine: half full, or closing
	done chan struct{} // closed when that has ended
}

func (out *output) start(o *Options) {
	out.o = o
	out.room.L = &out.mu
	out.tell = make(chan struct{}, 1)
	out.done = make(chan struct{})
	if o.Sync {
		close(out.done)
		return
	}
	out.waiting = make([]byte, 0, o.Buffer)
	out.spare = make([]byte, 0, o.Buffer)
	go out.run()
}

// add takes a line, which the caller may change afterwards.
func (out *output) add(line []byte) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.o.Sync && !out.closed {
		n, err := out.write(line)
		out.note(line, n, err)
		return
	}
	if !out.makeRoom(len(line)) {
		out.lost.Add(1)
		return
	}
	before := len(out.waiting)
	out.waiting = append(out.waiting, line...)
	if half := out.o.Buffer / 2; before < half && len(out.waiting) >= half {
		out.wake()
	}
}

// makeRoom reports whether n bytes fit, after having done what the policy says.
func (out *output) makeRoom(n int) bool {
	for !out.closed && n <= out.o.Buffer {
		if len(out.waiting)+n <= out.o.Buffer {
			return true
		}
		switch out.o.Full {
		case DropNewest:
			return false
		case DropOldest:
			out.dropOldest(max(n, out.o.Buffer/8))
		case Wait:
			out.room.Wait()
		}
	}
	return false
}

// dropOldest drops whole lines of at least n bytes.
func (out *output) dropOldest(n int) {
	n = min(n, len(out.waiting))
	n += bytes.IndexByte(out.waiting[n-1:], '\n') // up to a line's end
	out.lost.Add(uint64(bytes.Count(out.waiting[:n], newline)))
	out.waiting = out.waiting[:copy(out.waiting, out.waiting[n:])]
}

var newline = []byte{'\n'}

func (out *output) wake() {
	select {
	case out.tell <- struct{}{}:
	default: // it is woken already
	}
}

// run writes what waits, from time to time and when the buffer fills.
func (out *output) run() {
	defer close(out.done)
	tick := time.NewTicker(out.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-out.tell:
		case <-tick.C:
		}
		out.mu.Lock()
		closed := out.closed
		lines := out.waiting
		out.waiting = out.spare[:0]
		out.room.Broadcast()
		out.mu.Unlock()
		if len(lines) > 0 {
			n, err := out.write(lines)
			out.mu.Lock()
			out.note(lines, n, err)
			out.mu.Unlock()
		}
		out.spare = lines
		if closed {
			return
		}
	}
}

// write hands lines to the writer. Its panic is an error: on the goroutine of the log it would
// end the process.
func (out *output) write(lines []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("accesslog: Options.To panicked: %v", v)
		}
	}()
	return out.o.To.Write(lines)
}

// note notes how writing lines ended. The caller holds mu.
func (out *output) note(lines []byte, n int, err error) {
	if err == nil && n < len(lines) {
		err = errors.New("accesslog: the writer took a part and returned no error")
	}
	if err != nil {
		out.err = err
		out.lost.Add(uint64(bytes.Count(lines[min(max(n, 0), len(lines)):], newline)))
	}
}

func (out *output) close(ctx context.Context) error {
	out.mu.Lock()
	out.closed = true
	out.room.Broadcast()
	out.mu.Unlock()
	out.wake()
	select {
	case <-out.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.err
}
