// Package capture takes profiles of a service so that all who look at it get the same
// figures.
//
// A service's own CPU profile stands for less or more than it used: its timer ticks no
// oftener than the kernel's, it does not watch the runtime's system monitor, and it
// takes its stacks to stand for all of the time. [CPU] takes a profile and scales it to
// what the kernel counted for the process meanwhile, where that process runs here.
package capture

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/stats/unit"
)

// CPU takes the CPU profile of a service for d, in whole seconds, and scales it to what
// the kernel counted. It adds the system monitor's CPU as a stack. pid is the process
// that was asked; 0 if that is not of this machine, or only forwards to the service.
// The profile's warnings say what was scaled.
func CPU(ctx context.Context, s *pprof.Service, d time.Duration) (p *pprof.Profile, pid int, err error) {
	at := find(s.String())
	if p, err = s.CPU(ctx, d); err != nil || p.Kind != pprof.CPU {
		return p, 0, err
	}
	return p, at.account(p), nil
}

// process is a process, and the CPU that it had used at some time; its number is 0 if
// there is none.
type process struct {
	pid  int
	used used
	at   time.Time
}

// used is the CPU that the kernel counted for a process.
type used struct {
	all     time.Duration
	monitor time.Duration // of it, for the Go runtime's system monitor; 0 if unknown
}

// readUsed reads what a process has used so far.
func readUsed(pid int) (u used, err error) {
	if u.all, err = bpf.CPU(pid); err != nil {
		return used{}, err
	}
	if monitor, err := bpf.SystemMonitor(pid); err == nil {
		u.monitor = monitor
	}
	return u, nil
}

// since is a part of what was used after an earlier reading.
func (u used) since(earlier used, part float64) used {
	over := func(d time.Duration) time.Duration { return time.Duration(part * float64(d)) }
	return used{over(u.all - earlier.all), max(0, over(u.monitor-earlier.monitor))}
}

// find looks for the process that listens where a URL points to.
func find(raw string) process {
	u, err := url.Parse(raw)
	if err != nil {
		return process{}
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && !ip.IsLoopback() {
		return process{}
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return process{}
	}
	pid, err := proc.Listener(port)
	if err != nil || pid == 0 {
		return process{}
	}
	now, err := readUsed(pid)
	if err != nil {
		return process{}
	}
	return process{pid, now, time.Now()}
}

// RunsProgram reports whether a process runs the program that a profile is of, as far
// as both tell their file's name. What listens here may only forward to the service, as
// kubectl port-forward, ssh -L and Docker's proxy do.
func RunsProgram(pid int, p *pprof.Profile) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || p.Program() == "" {
		return true
	}
	return p.Program() == filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
}

// account scales a profile to what the kernel counted since the process was found, and
// returns the process's number; 0 if the profile is not of it.
func (at process) account(p *pprof.Profile) int {
	if at.pid == 0 || !RunsProgram(at.pid, p) {
		return 0
	}
	if now, err := readUsed(at.pid); err == nil {
		part := min(1, p.Duration.Seconds()/time.Since(at.at).Seconds()) // it was asked for, and sent, besides
		rescale(p, at.pid, now.since(at.used, part))
	}
	return at.pid
}

// rescale makes a profile add up to what the kernel counted. It warns if that changes
// more than a little, and more than chance does. A profile of far more than was counted
// is another process's, such as a service's behind a proxy, and is left as it is.
func rescale(p *pprof.Profile, pid int, counted used) {
	const little, foreign = 0.03, 1.25
	var seen cost.Amount
	for _, s := range p.Stacks {
		seen.Count += s.Count
		seen.Value += s.Value
	}
	watched := float64(counted.all - counted.monitor)
	if seen.Value <= 0 || watched <= 0 {
		return
	}
	covered := seen.Value / watched
	beyond := math.Abs(seen.Value-watched) > max(little*watched, seen.Margin())
	text := fmt.Sprintf("the profile stands for %s of the CPU that the kernel counted, %s of %s", unit.Format(covered, unit.Share),
		unit.Format(seen.Value, unit.Nanoseconds), unit.Format(watched, unit.Nanoseconds))
	switch {
	case covered > foreign && beyond:
		p.Warnings = append(p.Warnings, fmt.Errorf("%s, for process %d; it was left as it is: is that a proxy of the service?", text, pid))
		return
	case beyond:
		p.Warnings = append(p.Warnings, fmt.Errorf("%s, and was scaled to that", text))
	}
	p.Scale(1 / covered)
	if counted.monitor > 0 {
		p.Add(cost.MonitorStack(counted.monitor))
	}
}
