// Package work is what the injected middlewares do: known costs, each of which
// keeps account of itself. The middlewares that frameworks want around it are
// theirs, so that an instrument has to find them by where they are written.
//
// What a cost is was measured where it was caused: calls are counted, and the thread's
// CPU time is taken of every sixteenth, since asking for it costs what the cheapest of
// these do; what that adds, and what counting adds to all, is learnt beforehand. Readings
// are dropped where the goroutine did not stay on its thread. Of what waits alone, wall
// time is taken of each call.
package work

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Amounts say how much of each is done in a request; nothing of what is 0.
type Amounts struct {
	Spin  time.Duration // CPU burnt
	Alloc int           // bytes allocated
	Block time.Duration // slept
	Lock  time.Duration // CPU burnt while holding a mutex that all requests want
	Log   time.Duration // what the reader of the log takes for a line

	// Aside has the spins done by a goroutine of its own, many at once, each for so much CPU
	// time of its thread. A spin within a request takes more or less of the CPU than its own time:
	// it also changes how often server and client find each other asleep.
	Aside bool
}

// Flags defines the flags of an arm, to be read after flag.Parse.
func Flags() *Amounts {
	a := new(Amounts)
	flag.DurationVar(&a.Spin, "spin", 20*time.Microsecond, "CPU that one middleware burns; 0 leaves it out, as with the others")
	flag.IntVar(&a.Alloc, "alloc", 32<<10, "bytes that one middleware allocates")
	flag.DurationVar(&a.Block, "block", 0, "how long one middleware sleeps")
	flag.DurationVar(&a.Lock, "lock", 0, "CPU that one middleware burns under a shared lock")
	flag.BoolVar(&a.Aside, "aside", false, "the spins are done apart from requests, 200 at a time")
	flag.DurationVar(&a.Log, "slowlog", 0, "how long the reader of one middleware's log takes for a line")
	return a
}

// FromFlags parses the flags of a program that has no others, and prepares what they ask
// for. The program ends with status 1 where that cannot be.
func FromFlags(program string) *Set {
	amounts := Flags()
	flag.Parse()
	s, err := New(*amounts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		os.Exit(1)
	}
	return s
}

// Set is what an arm does in a request; what is left out is nil.
type Set struct {
	Spin  *Spin
	Alloc *Alloc
	Block *Block
	Lock  *Lock
	Log   *Log
}

// Present returns those of five layers whose part of the set there is: Spin, Alloc, Block,
// Lock and Log, in this order.
func Present[L any](s *Set, layers ...L) []L {
	all := layers[:0]
	for i, present := range []bool{s.Spin != nil, s.Alloc != nil, s.Block != nil, s.Lock != nil, s.Log != nil} {
		if present {
			all = append(all, layers[i])
		}
	}
	return all
}

// New prepares what there is to do. It measures how fast this machine is, which
// takes some milliseconds.
func New(a Amounts) (*Set, error) {
	s := new(Set)
	perSecond := perSecond()
	if a.Spin > 0 {
		s.Spin = &Spin{rounds: rounds(perSecond, a.Spin)}
		if a.Aside {
			if threadCPU() == 0 {
				return nil, errors.New("-aside: a thread's CPU time cannot be told here")
			}
			s.Spin.aside = make(chan struct{}, 1)
			go s.Spin.burnAside(a.Spin)
		} else {
			s.Spin.settle(s.Spin.Do)
		}
	}
	if a.Alloc > 0 {
		s.Alloc = newAlloc(a.Alloc)
	}
	if a.Block > 0 {
		s.Block = &Block{d: a.Block}
	}
	if a.Lock > 0 {
		s.Lock = &Lock{rounds: rounds(perSecond, a.Lock)}
		s.Lock.settle(s.Lock.Do)
		s.Lock.waited.Store(0)
	}
	if a.Log > 0 {
		w, err := slowPipe(a.Log)
		if err != nil {
			return nil, err
		}
		s.Log = &Log{out: log.New(w, "", 0)}
	}
	return s, nil
}

// Body is what every arm answers to GET /.
const Body = "hello\n"

// ServeHTTP answers with the truth.
func (s *Set) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(s.Truth()) // who asked is gone if it fails
}

// Truth is the account of all that is done, as JSON: for "spin", "alloc",
// "block", "lock" and "log" the calls; the wall time of block and log; the CPU time of
// the others where it can be told, taken from as many calls as cpu_calls says; the bytes;
// and how long a lock was waited for. What is left out has made no calls.
func (s *Set) Truth() []byte {
	all := map[string]account{"spin": {}, "alloc": {}, "block": {}, "lock": {}, "log": {}}
	if s.Spin != nil {
		all["spin"] = s.Spin.account()
	}
	if s.Alloc != nil {
		all["alloc"] = s.Alloc.account()
		a := all["alloc"]
		a.Bytes = a.Calls * s.Alloc.weight
		all["alloc"] = a
	}
	if s.Block != nil {
		all["block"] = s.Block.account()
	}
	if s.Lock != nil {
		all["lock"] = s.Lock.account()
		a := all["lock"]
		a.Wait = s.Lock.waited.Load()
		all["lock"] = a
	}
	if s.Log != nil {
		all["log"] = s.Log.account()
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // numbers always have a form
	}
	return text
}

// Spin burns CPU.
type Spin struct {
	meter
	rounds int
	aside  chan struct{} // a batch to be burnt by another goroutine; nil: each call burns its own
}

// batch is how many spins are done aside at once: few enough that no request waits long, and
// so many that handing them over costs nothing.
const batch = 200

// Do does it once.
func (s *Spin) Do() {
	if s.aside != nil {
		if s.calls.Add(1)%batch == 0 {
			s.aside <- struct{}{}
		}
		return
	}
	m := s.begin()
	burn(s.rounds)
	m.end(&s.meter)
}

// burnAside burns d of CPU time for each call, a batch at a time.
func (s *Spin) burnAside(d time.Duration) {
	runtime.LockOSThread() // whose clock is read
	for range s.aside {
		begun, burnt := threadCPU(), time.Duration(0)
		for burnt < batch*d {
			burn(s.rounds)
			burnt = threadCPU() - begun
		}
		s.cpu.Add(int64(burnt))
		s.cpuCalls.Add(batch)
	}
}

// Alloc allocates memory that is garbage at the next request.
type Alloc struct {
	meter
	bytes  int
	weight int64 // bytes that one call takes of the heap
	kept   atomic.Pointer[[]byte]
}

// Do does it once.
func (a *Alloc) Do() {
	m := a.begin()
	a.take()
	m.end(&a.meter)
}

func (a *Alloc) take() {
	b := make([]byte, a.bytes)
	a.kept.Store(&b)
}

// Block sleeps.
type Block struct {
	timer
	d time.Duration
}

// Do does it once.
func (b *Block) Do() {
	begun := time.Now()
	time.Sleep(b.d)
	b.count(begun)
}

// Lock burns CPU while it holds a mutex.
type Lock struct {
	meter
	rounds  int
	mu      sync.Mutex
	waiting atomic.Int64 // calls that want the mutex and found it taken
	// waited is nanoseconds for the mutex: to get it, and to give it back, since who
	// gives it to one that has waited for long yields the processor with it.
	waited atomic.Int64
}

// Do does it once.
func (l *Lock) Do() {
	if !l.mu.TryLock() {
		l.wait()
	}
	m := l.begin()
	burn(l.rounds)
	m.end(&l.meter)
	if l.waiting.Load() == 0 {
		l.mu.Unlock()
		return
	}
	begun := time.Now()
	l.mu.Unlock()
	l.waited.Add(int64(time.Since(begun)))
}

func (l *Lock) wait() {
	begun := time.Now()
	l.waiting.Add(1)
	l.mu.Lock()
	l.waiting.Add(-1)
	l.waited.Add(int64(time.Since(begun)))
}

// Log writes a line to a pipe whose reader is slow, and waits until the pipe
// takes it.
type Log struct {
	timer
	out *log.Logger
}

// Do does it once, for a request to a path.
func (l *Log) Do(method, path string) {
	begun := time.Now()
	l.out.Print("method=", method, " path=", path, " status=200")
	l.count(begun)
}
