package main

import (
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

// local is the process behind a URL on this machine, and the CPU it had used when
// it was found; its number is 0 if it was not.
type local struct {
	pid  int
	used counted
	at   time.Time
}

// counted is the CPU that the kernel counted for a process.
type counted struct {
	all     time.Duration
	monitor time.Duration // of it, for the Go runtime's system monitor; 0 if it does not tell
}

// usedBy reads what a process has used so far.
func usedBy(pid int) (c counted, err error) {
	if c.all, err = bpf.CPU(pid); err != nil {
		return counted{}, err
	}
	if monitor, err := bpf.SystemMonitor(pid); err == nil {
		c.monitor = monitor
	}
	return c, nil
}

// since is the part of what was used after an earlier reading. Where the later one
// does not tell of the monitor, neither does the part.
func (c counted) since(earlier counted, part float64) counted {
	over := func(d time.Duration) time.Duration { return time.Duration(part * float64(d)) }
	return counted{over(c.all - earlier.all), max(0, over(c.monitor-earlier.monitor))}
}

// findLocal looks for the process that listens where a URL points to.
func findLocal(raw string) local {
	u, err := url.Parse(raw)
	if err != nil {
		return local{}
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && !ip.IsLoopback() {
		return local{}
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return local{}
	}
	pid, err := proc.Listener(port)
	if err != nil || pid == 0 {
		return local{}
	}
	used, err := usedBy(pid)
	if err != nil {
		return local{}
	}
	return local{pid, used, time.Now()}
}

// runsProgram reports whether a process runs the program that a profile is of, as far as both
// tell their file's name. What listens here may only forward to the service, as
// kubectl port-forward, ssh -L and Docker's proxy do.
func runsProgram(pid int, p *pprof.Profile) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil || p.Program() == "" {
		return true
	}
	return p.Program() == filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
}

// hold holds a profile against the CPU that the kernel counted meanwhile. The
// service's profiler cannot tick more often than the kernel does, does not tick
// while it winds up, takes its stacks to stand for all of the time, and does not
// watch the runtime's system monitor.
func (l local) hold(b *bill) {
	if l.pid == 0 || !runsProgram(l.pid, b.cpu) {
		return
	}
	b.local = l.pid
	if used, err := usedBy(l.pid); err == nil {
		part := min(1, b.cpu.Duration.Seconds()/time.Since(l.at).Seconds()) // it was asked for, and sent, besides
		b.rescale(used.since(l.used, part))
	}
}

// rescale has the profile add up to what the kernel counted, and says so if that
// is more than a little, and more than chance makes it. A profile of far more than
// was counted is somebody else's: of a service behind a proxy, for one.
func (b *bill) rescale(used counted) {
	const little, foreign = 0.03, 1.25
	var seen cost.Amount
	for _, s := range b.cpu.Stacks {
		seen.Count += s.Count
		seen.Value += s.Value
	}
	watched := float64(used.all - used.monitor)
	if seen.Value <= 0 || watched <= 0 {
		return
	}
	covered := seen.Value / watched
	beyond := math.Abs(seen.Value-watched) > max(little*watched, seen.Margin())
	text := fmt.Sprintf("the profile stands for %s of the CPU that the kernel counted, %s of %s", unit.Format(covered, unit.Share),
		unit.Format(seen.Value, unit.Nanoseconds), unit.Format(watched, unit.Nanoseconds))
	switch {
	case covered > foreign && beyond:
		b.warnings = append(b.warnings, fmt.Errorf("%s, for process %d; it was left as it is: is that a proxy of the service?", text, b.local))
		return
	case beyond:
		b.warnings = append(b.warnings, fmt.Errorf("%s, and was scaled to that", text))
	}
	b.cpu.Scale(1 / covered)
	if used.monitor > 0 {
		b.cpu.Add(cost.MonitorStack(used.monitor))
	}
}
