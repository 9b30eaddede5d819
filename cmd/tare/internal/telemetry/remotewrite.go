package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// writePath is where Prometheus takes remote write.
const writePath = "/api/v1/write"

// Bounds of what waits to be written, and of how long a receiver is left in peace after a
// failure: twice as long each time.
const (
	mostWaiting = 8 << 20 // bytes
	leastRest   = 250 * time.Millisecond
	mostRest    = 30 * time.Second
)

// writer sends figures by Prometheus's remote write, version 1.0 of its specification
// (prometheus.io/docs/specs/prw/remote_write_spec): one request at a time, the oldest
// first, so that no receiver sees a series out of order. What a receiver cannot take now is
// tried again; what it refuses is lost. If too much waits, the oldest is lost: counters lose
// nothing by that, as they only grow, and gauges a reading.
type writer struct {
	receiver *Receiver
	lost     Losses

	mu      sync.Mutex
	series  series
	waiting [][]byte
	first   int // the number of the first that waits, of all requests
	bytes   int // that wait

	wake chan struct{}      // holds one if something waits
	end  context.CancelFunc // stops what is under way
	over chan struct{}      // closed: nothing more will come
	done chan struct{}
	ctx  context.Context
}

// newWriter is one that sends nothing yet. Its series have the labels that a scrape would
// give them: job and instance.
func newWriter(raw string) (*writer, error) {
	receiver, err := NewReceiver("metrics", raw, writePath, "TARE_REMOTE_WRITE_HEADERS")
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0",
	} {
		receiver.SetHeader(name, value)
	}
	w := &writer{receiver: receiver, wake: make(chan struct{}, 1), over: make(chan struct{}), done: make(chan struct{})}
	w.ctx, w.end = context.WithCancel(context.Background())
	w.series.more = []Label{{"job", "tare"}}
	if host, err := os.Hostname(); err == nil {
		w.series.more = append(w.series.more, Label{"instance", host})
	}
	return w, nil
}

// refusal is what a receiver says to a request that it never will take.
type refusal struct{ error }

// busy is what one says that may take the request later, and when.
type busy struct {
	error
	after time.Duration // 0: it does not say
}

// judgeWritten is what a receiver has against a request; nil is nothing.
func judgeWritten(resp *http.Response, text []byte) error {
	if resp.StatusCode/100 == 2 {
		return nil
	}
	err := fmt.Errorf("it answered %s: %q", resp.Status, text[:min(len(text), 200)])
	if resp.StatusCode/100 != 5 && resp.StatusCode != http.StatusTooManyRequests {
		return refusal{err}
	}
	after, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // or a date, or nothing
	return busy{err, time.Duration(after) * time.Second}
}

// try sends a request without any series. An error is one that no later try would mend.
func (w *writer) try(ctx context.Context) error {
	err := w.receiver.Post(ctx, pack(nil), judgeWritten)
	if errors.As(err, new(refusal)) {
		return err
	}
	if err != nil {
		w.lost.Add(0, err)
	}
	return nil
}

// offer has figures written soon.
func (w *writer) offer(f *Figures) {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests, err := w.series.requests(f)
	if err != nil {
		w.lost.Add(1, err)
		return
	}
	for _, body := range requests {
		w.waiting = append(w.waiting, body)
		w.bytes += len(body)
	}
	for w.bytes > mostWaiting && len(w.waiting) > 1 {
		w.drop()
		w.lost.Add(1, errors.New("the receiver of --remote-write takes less than there is: the oldest is lost"))
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// drop forgets the first that waits. The caller holds mu.
func (w *writer) drop() {
	w.bytes -= len(w.waiting[0])
	w.waiting[0] = nil
	w.waiting = w.waiting[1:]
	w.first++
}

// next is the first that waits, and its number; nil if none does.
func (w *writer) next() (body []byte, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return nil, 0
	}
	return w.waiting[0], w.first
}

// run sends what waits until there will be no more.
func (w *writer) run() {
	defer close(w.done)
	rest := leastRest
	for {
		body, number := w.next()
		if body == nil {
			select {
			case <-w.wake:
				continue
			case <-w.over:
			}
			if body, _ := w.next(); body == nil {
				return
			}
			continue
		}
		err := w.receiver.Post(w.ctx, body, judgeWritten)
		if w.ctx.Err() != nil {
			return
		}
		if err == nil || errors.As(err, new(refusal)) {
			w.settle(number, err)
			rest = leastRest
			continue
		}
		w.lost.Add(0, err)
		var b busy
		errors.As(err, &b)
		if !w.sleep(min(max(rest+rand.N(rest), b.after), 2*mostRest)) {
			return
		}
		rest = min(2*rest, mostRest)
	}
}

// sleep waits for a while, at the end for a short one, and reports whether there still is
// something to do.
func (w *writer) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.over:
	case <-w.ctx.Done():
		return false
	}
	select {
	case <-time.After(min(d, leastRest)):
		return true
	case <-w.ctx.Done():
		return false
	}
}

// settle forgets a request, which may have been dropped meanwhile.
func (w *writer) settle(number int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.lost.Add(1, err)
	}
	if len(w.waiting) > 0 && w.first == number {
		w.drop()
	}
}

// close writes that no series goes on, and waits until all was sent, but not for long.
func (w *writer) close() error {
	if w == nil {
		return nil
	}
	w.offer(&Figures{At: time.Now()})
	close(w.over)
	select {
	case <-w.done:
	case <-time.After(Patience):
	}
	w.end()
	<-w.done
	w.receiver.Close()
	lost, why := w.lost.Take()
	if lost += len(w.waiting); lost > 0 {
		return fmt.Errorf("%d requests of remote write were lost: %w", lost, cmp.Or(why, errors.New("the receiver did not take them in time")))
	}
	return nil
}
