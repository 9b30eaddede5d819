package load

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/tarehq/tare/load/internal/sys"
)

const epollWorks = true

// runEpoll drives the plan by event loops, each on an operating system thread
// of its own.
//
// Note: a goroutine a connection takes a third more CPU time a request, and
// net/http's client three times as much and more: both pay for a scheduler
// between the poller and the code. Everything here is laid out to need no
// goroutine switch, no allocation and two system calls a request.
func runEpoll(p *plan) (closeAll func(), err error) {
	loops := make([]*loop, p.threads)
	closeAll = func() {
		for _, l := range loops {
			if l != nil {
				l.close()
			}
		}
	}
	for i := range loops {
		if loops[i], err = newLoop(p, i); err != nil {
			closeAll()
			return nil, fmt.Errorf("starting event loop: %w", err)
		}
	}
	defer lendProcessors(len(loops))()
	var wg sync.WaitGroup
	for i, l := range loops {
		wg.Go(func() {
			// Never unlocked: the thread, whose CPU and timers are set, ends
			// with the goroutine.
			runtime.LockOSThread()
			l.prepareThread(i)
			l.run()
		})
	}
	wg.Wait()
	return closeAll, nil
}

// lendProcessors gives the scheduler n processors more, which the event loops
// keep, until the returned function takes them back.
//
// Note: the plain way is to tell the scheduler of each wait and leave it the
// processor meanwhile. It then watches every 20 µs whether to hand that on: at
// 50,000 answers a second its monitor took a quarter of the generator's CPU time,
// and an answer was read only after a processor was had back.
func lendProcessors(n int) (takeBack func()) {
	lending.Lock()
	defer lending.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
	return func() {
		lending.Lock()
		defer lending.Unlock()
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)-n))
	}
}

// lending keeps runs side by side from undoing each other's loans. It is the one
// variable of the package that changes, for what it guards is the process's and
// no run's: runtime.GOMAXPROCS reads what it returns before it stops the world
// and sets the new number after, so that of two calls at once either may be lost.
//
// Note: without a lock, by making up for what each call replaced, one in a dozen
// runs of TestProcessorsAreTakenBack ended with a number of processors that was
// not the first. A lock in each plan is none between plans.
var lending sync.Mutex

// prepareThread sets the calling thread up for loop i. Without these settings
// the loop works too, less evenly.
func (l *loop) prepareThread(i int) {
	l.rec.Lock()
	defer l.rec.Unlock()
	if err := sys.PreciseTimers(); err != nil {
		l.rec.caveats = append(l.rec.caveats, fmt.Errorf("making timers precise: %w", err))
	}
	if cpus := l.plan.opts.CPUs; len(cpus) > 0 {
		cpu := cpus[i%len(cpus)]
		if err := sys.Pin(cpu); err != nil {
			l.rec.caveats = append(l.rec.caveats, fmt.Errorf("pinning event loop to CPU %d: %w", cpu, err))
		}
	}
}
