package main

import (
	"container/heap"
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

// exit lets answers leave on time. time.Sleep does not: an idle Go program
// waits in whole milliseconds, which doubles a service time of one. A thread of
// its own sleeps in nanoseconds instead, and writes the answers itself.
type exit struct {
	start   time.Time
	quantum time.Duration // every answer waits this long or longer
	journal *journal
	mu      sync.Mutex
	waiting departures
}

// departure is an answer that waits.
type departure struct {
	due    time.Duration // since the exit's start
	conn   net.Conn
	answer string
	entry  entry
	gone   chan<- struct{} // takes a token without blocking when the answer has left
}

// now is the time since the start, at least 1 ns.
func (x *exit) now() time.Duration { return max(1, time.Since(x.start)) }

func (x *exit) add(d departure) {
	x.mu.Lock()
	heap.Push(&x.waiting, d)
	x.mu.Unlock()
}

// next takes out an answer that is due. If none is, wait is how long until the
// next is or might be: whatever comes meanwhile waits for a quantum at least.
func (x *exit) next() (d departure, wait time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	wait = x.quantum
	if len(x.waiting) > 0 {
		wait = min(wait, x.waiting[0].due-x.now())
		if wait <= 0 {
			return heap.Pop(&x.waiting).(departure), 0
		}
	}
	return departure{}, wait
}

// run lets answers leave, for ever.
//
// Sleeps take longer than asked for, by 20 to 40 µs where this was written. What
// they take longer half of the time is learnt and not slept but spun: less CPU
// than spinning all that a sleep might take, since half of the time nothing is
// left to spin.
func (x *exit) run() {
	runtime.LockOSThread()
	sharpen()
	const step = time.Microsecond
	var lead time.Duration
	for {
		d, wait := x.next()
		switch {
		case wait <= 0:
			x.let(d)
		case wait > lead:
			woken := x.now() + wait
			sleep(wait - lead)
			if x.now() > woken {
				lead += step
			} else {
				lead = max(0, lead-step)
			}
		}
	}
}

// let writes an answer. A client that has gone away misses it. The entry comes
// first: whoever has the answer finds it in the log.
func (x *exit) let(d departure) {
	d.entry.departure = x.now()
	x.journal.add(d.entry)
	_, _ = io.WriteString(d.conn, d.answer)
	d.gone <- struct{}{}
}

// departures is a heap, the next first. It implements heap.Interface.
type departures []departure

func (d departures) Len() int           { return len(d) }
func (d departures) Less(i, j int) bool { return d[i].due < d[j].due }
func (d departures) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(v any)        { *d = append(*d, v.(departure)) }

func (d *departures) Pop() any {
	last := len(*d) - 1
	v := (*d)[last]
	(*d)[last] = departure{} // lets go of the connection
	*d = (*d)[:last]
	return v
}
