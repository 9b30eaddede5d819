package main

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
)

// local is the process behind a URL on this machine, and the CPU it had used when
// it was found; its number is 0 if it was not.
type local struct {
	pid   int
	begun time.Duration
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
	return local{pid, used}
}

// hold holds a profile against the CPU that the kernel counted meanwhile. The
// service's profiler cannot tick more often than the kernel does, and takes its
// stacks to stand for what they would if it could.
func (l local) hold(b *bill) {
	if l.pid == 0 {
		return
	}
	b.local = l.pid
	if used, err := bpf.CPU(l.pid); err == nil {
		b.rescale(used - l.begun)
	}
}

// rescale has the profile add up to what the kernel counted, if it falls far short
// of that. A little more is always counted, since the profile is not all that
// happens meanwhile.
func (b *bill) rescale(used time.Duration) {
	const short = 0.8
	sum := 0.0
	for _, s := range b.cpu.Stacks {
		sum += s.Value
	}
	if sum <= 0 || sum >= short*float64(used) {
		return
	}
	scaled := make([]cost.Stack, len(b.cpu.Stacks))
	for i, s := range b.cpu.Stacks {
		s.Value *= float64(used) / sum
		scaled[i] = s
	}
	b.warnings = append(b.warnings, fmt.Errorf("the profile stands for %s of CPU where the kernel counted %s, and was scaled to that: the kernel ticks less often than the profiler believes", time.Duration(sum).Round(time.Millisecond), used.Round(time.Millisecond)))
	b.cpu = pprof.New(pprof.CPU, b.cpu.Duration, scaled)
}
