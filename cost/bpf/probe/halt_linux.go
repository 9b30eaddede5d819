//go:build linux && (amd64 || arm64)

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
// Note: from the first device to the targets' Close it stands in for what SIGTSTP
// does by default; Go cannot bring that back, so that later ones are ignored.
type guard struct {
	mu      sync.Mutex // of the devices' links as well
	devices []*device
}

// terminal is where this process is stopped from, which it is once for all targets.
var terminal struct {
	mu     sync.Mutex     // taken before a guard's
	guards []*guard       // of the targets with devices
	stops  chan os.Signal // nil until there is a guard
	over   chan struct{}  // closed once nobody waits for stops any more
}

// add has a device guarded.
func (g *guard) add(d *device) {
	g.mu.Lock()
	g.devices = append(g.devices, d)
	g.mu.Unlock()
	terminal.mu.Lock()
	defer terminal.mu.Unlock()
	if !slices.Contains(terminal.guards, g) {
		terminal.guards = append(terminal.guards, g)
	}
	if terminal.stops != nil || signal.Ignored(unix.SIGTSTP) {
		return
	}
	stops, over := make(chan os.Signal, 1), make(chan struct{})
	terminal.stops, terminal.over = stops, over
	signal.Notify(stops, unix.SIGTSTP)
	go func() {
		defer close(over)
		for range stops {
			halt()
		}
	}()
}

// remove has a device guarded no more.
func (g *guard) remove(d *device) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.devices = slices.DeleteFunc(g.devices, func(other *device) bool { return other == d })
}

// close ends the guard.
func (g *guard) close() {
	terminal.mu.Lock()
	terminal.guards = slices.DeleteFunc(terminal.guards, func(other *guard) bool { return other == g })
	stops, over := terminal.stops, terminal.over
	if len(terminal.guards) > 0 || stops == nil {
		terminal.mu.Unlock()
		return
	}
	terminal.stops, terminal.over = nil, nil
	terminal.mu.Unlock()
	signal.Stop(stops)
	close(stops)
	<-over
}

// halt stops this process, without probes, until it is told to go on.
func halt() {
	terminal.mu.Lock()
	defer terminal.mu.Unlock()
	for _, g := range terminal.guards {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, d := range g.devices {
			d.lift()
		}
	}
	// Sent to this thread, it works before the call returns.
	runtime.LockOSThread()
	unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
	runtime.UnlockOSThread()
	for _, g := range terminal.guards {
		for _, d := range g.devices {
			d.resume()
		}
	}
	select {
	case <-terminal.stops: // pressed twice
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
