package main

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/stats/unit"
)

// local is the process behind a URL on this machine, and the CPU it had used when
// it was found; its number is 0 if it was not.
type local struct {
	pid  int
	used time.Duration
	at   time.Time
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
	used, err := bpf.CPU(pid)
	if err != nil {
		return local{}
	}
	return local{pid, used, time.Now()}
}

// hold holds a profile against the CPU that the kernel counted meanwhile. The
// service's profiler cannot tick more often than the kernel does, does not tick
// while it winds up, and takes its stacks to stand for all of the time.
func (l local) hold(b *bill) {
	if l.pid == 0 {
		return
	}
	b.local = l.pid
	if used, err := bpf.CPU(l.pid); err == nil {
		part := min(1, b.cpu.Duration.Seconds()/time.Since(l.at).Seconds()) // it was asked for, and sent, besides
		b.rescale(time.Duration(part * float64(used-l.used)))
	}
}

// rescale has the profile add up to what the kernel counted, and says so if that
// is more than a little, and more than chance makes it. A profile of far more than
// was counted is somebody else's: of a service behind a proxy, for one.
func (b *bill) rescale(used time.Duration) {
	const little, foreign = 0.03, 1.25
	var seen cost.Amount
	for _, s := range b.cpu.Stacks {
		seen.Count += s.Count
		seen.Value += s.Value
	}
	if seen.Value <= 0 || used <= 0 {
		return
	}
	covered := seen.Value / float64(used)
	beyond := math.Abs(seen.Value-float64(used)) > max(little*float64(used), seen.Margin())
	text := fmt.Sprintf("the profile stands for %s of the CPU that the kernel counted, %s of %s", unit.Format(covered, unit.Share),
		unit.Format(seen.Value, unit.Nanoseconds), unit.Format(float64(used), unit.Nanoseconds))
	switch {
	case covered > foreign && beyond:
		b.warnings = append(b.warnings, fmt.Errorf("%s, for process %d; it was left as it is: is that a proxy of the service?", text, b.local))
		return
	case beyond:
		b.warnings = append(b.warnings, fmt.Errorf("%s, and was scaled to that", text))
	}
	b.cpu.Scale(1 / covered)
}
