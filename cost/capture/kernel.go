package capture

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/internal/task"
	"github.com/tarehq/tare/stats/unit"
)

// Kernel is the CPU that the kernel counted for a process over some time.
type Kernel struct {
	All     time.Duration
	Monitor time.Duration // of it, for the Go runtime's system monitor, which its profiler does not watch; 0: not known
}

// Scale makes a profile's stacks add up to what the kernel counted, the system
// monitor's CPU as a stack of its own. It returns what they stood for before, as a share
// of what they could see. If that is 0, nothing was seen or counted, and nothing changed.
//
// Note: charging the other threads with the monitor's CPU made 27 µs of a middleware's
// 23, behind half of the requests that a server could take.
func (k Kernel) Scale(p *pprof.Profile) (covered float64) {
	seen, watched := sum(p).Value, float64(k.All-k.Monitor)
	if seen <= 0 || watched <= 0 {
		return 0
	}
	p.Scale(watched / seen)
	if k.Monitor > 0 {
		p.Add(cost.MonitorStack(k.Monitor))
	}
	return seen / watched
}

// adopt scales a profile that a service took of itself. It warns if that changes more
// than a little, and more than chance does. A profile of far more than was counted is
// another process's, such as a service's behind a proxy, and is left as it is.
func (k Kernel) adopt(p *pprof.Profile, pid int) {
	const little, foreign = 0.03, 1.25
	seen, watched := sum(p), float64(k.All-k.Monitor)
	if seen.Value <= 0 || watched <= 0 {
		return
	}
	beyond := math.Abs(seen.Value-watched) > max(little*watched, seen.Margin())
	text := fmt.Sprintf("the profile stands for %s of the CPU that the kernel counted, %s of %s", unit.Format(seen.Value/watched, unit.Share),
		unit.Format(seen.Value, unit.Nanoseconds), unit.Format(watched, unit.Nanoseconds))
	switch {
	case seen.Value/watched > foreign && beyond:
		p.Warnings = append(p.Warnings, fmt.Errorf("%s, for process %d; it was left as it is: is that a proxy of the service?", text, pid))
		return
	case beyond:
		p.Warnings = append(p.Warnings, fmt.Errorf("%s, and was scaled to that", text))
	}
	k.Scale(p)
}

// sum is what a profile's stacks come to.
func sum(p *pprof.Profile) (a cost.Amount) {
	for i := range p.Stacks {
		a.Count += p.Stacks[i].Count
		a.Value += p.Stacks[i].Value
	}
	return a
}

// readKernel reads what a process has used so far.
func readKernel(pid int) (k Kernel, err error) {
	if k.All, err = bpf.CPU(pid); err != nil {
		return Kernel{}, err
	}
	if monitor, err := bpf.SystemMonitor(pid); err == nil {
		k.Monitor = monitor
	}
	return k, nil
}

// since is a part of what was used after an earlier reading.
func (k Kernel) since(earlier Kernel, part float64) Kernel {
	over := func(d time.Duration) time.Duration { return time.Duration(part * float64(d)) }
	return Kernel{over(k.All - earlier.All), max(0, over(k.Monitor-earlier.Monitor))}
}

// profileCPU takes the CPU profile of a service for d, in whole seconds, and scales it to
// what the kernel counted. pid is the process that was asked; 0 if that is not of this
// machine, or only forwards to the service.
func profileCPU(ctx context.Context, s *pprof.Service, d time.Duration) (p *pprof.Profile, pid int, err error) {
	if port, local := localPort(s.String()); local {
		pid, _ = proc.Listener(port) // 0 where nobody can say who listens
	}
	before, at := Kernel{}, time.Now()
	if pid != 0 {
		before, err = readKernel(pid)
	}
	if err != nil {
		pid = 0
	}
	if p, err = s.CPU(ctx, d); err != nil || pid == 0 || p.Kind != pprof.CPU || !runsProgram(pid, p) {
		return p, 0, err
	}
	if now, err := readKernel(pid); err == nil {
		part := min(1, p.Duration.Seconds()/time.Since(at).Seconds()) // it was asked for, and sent, besides
		now.since(before, part).adopt(p, pid)
	}
	return p, pid, nil
}

// runsProgram reports whether a process runs the program that a profile is of, as far
// as both tell their file's name. What listens here may only forward to the service, as
// kubectl port-forward, ssh -L and Docker's proxy do.
func runsProgram(pid int, p *pprof.Profile) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || p.Program() == "" {
		return true
	}
	return task.Printable(p.Program()) == task.ProgramName(exe)
}
