//go:build linux && amd64

package probe

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// guard takes the probes of a target's devices away while this process is
// stopped from its terminal, and puts them back when it goes on: whoever is
// watched would pay for them, and nobody would look.
//
// Note: from the first device to the target's Close it stands in for what SIGTSTP
// does by default; Go cannot bring that back, so that later ones are ignored.
type guard struct {
	mu      sync.Mutex // of the devices' links as well
	devices []*device
	stops   chan os.Signal // nil until there is a device
	over    sync.WaitGroup
}

// add has a device guarded.
func (g *guard) add(d *device) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.devices = append(g.devices, d)
	if g.stops != nil || signal.Ignored(unix.SIGTSTP) {
		return
	}
	g.stops = make(chan os.Signal, 1)
	signal.Notify(g.stops, unix.SIGTSTP)
	g.over.Go(func() {
		for range g.stops {
			g.halt()
		}
	})
}

// remove has a device guarded no more.
func (g *guard) remove(d *device) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.devices = slices.DeleteFunc(g.devices, func(other *device) bool { return other == d })
}

// close ends the guard.
func (g *guard) close() {
	if g.stops == nil {
		return
	}
	signal.Stop(g.stops)
	close(g.stops)
	g.over.Wait()
	g.stops = nil
}

// halt stops this process, without probes, until it is told to go on.
func (g *guard) halt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.devices {
		d.lift()
	}
	// Sent to this thread, it works before the call returns.
	runtime.LockOSThread()
	unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
	runtime.UnlockOSThread()
	for _, d := range g.devices {
		d.resume()
	}
	select {
	case <-g.stops: // pressed twice
	default:
	}
}

// placing is what a link was made of.
type placing struct {
	program *ebpf.Program
	options link.UprobeMultiOptions
}

// lift takes probes away for a while.
func (d *device) lift() {
	d.lifted = time.Now()
	d.liftedCPU, _ = d.target.CPU() // what ended is noticed when it is asked for again
	d.failed = d.unlink()
}

// resume puts probes back. What is under way is not continued: calls may have
// ended meanwhile.
func (d *device) resume() {
	for _, p := range d.placed {
		if d.failed == nil {
			d.failed = d.place(p)
		}
	}
	if d.counting {
		d.window++
		d.failed = errors.Join(d.failed, d.Window.Set(d.window))
	}
	if cpu, err := d.target.CPU(); err == nil {
		d.awayCPU += cpu - d.liftedCPU
	}
	d.away += time.Since(d.lifted)
}

// clock returns the time and the CPU time of the process, both without those
// during which this process was stopped.
func (d *device) clock() (time.Time, time.Duration, error) {
	d.target.guard.mu.Lock()
	defer d.target.guard.mu.Unlock()
	cpu, err := d.target.CPU()
	return time.Now().Add(-d.away), cpu - d.awayCPU, err
}
