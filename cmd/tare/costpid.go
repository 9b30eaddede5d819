package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/stats/unit"
)

// outside reports whether a process is to be watched from outside.
func (c *costCmd) outside() bool { return c.PID != 0 || c.Cgroup != "" || c.Container != "" }

// checkOutside checks what concerns only that.
func (c *costCmd) checkOutside() error {
	switch {
	case c.Hz != 0 && !c.outside():
		return cli.Usage("tare cost --pid N --hz 999", errors.New("--hz is for --pid, --cgroup and --container; the service's own profiler keeps its rate"))
	case c.Hz < 0 || c.Hz > bpf.MaxHz:
		return cli.Usage("", fmt.Errorf("--hz %d: at least 1, at most %d", c.Hz, bpf.MaxHz))
	case c.Marks && c.PID == 0:
		return cli.Usage("tare cost --pid N --marks", errors.New("--marks watches one process by its number"))
	case c.Marks && (c.MaxOverhead <= 0 || c.MaxOverhead > 100):
		return cli.Usage("such as --max-overhead 5%", fmt.Errorf("--max-overhead %v%%: more than 0 %%, at most 100 %%", float64(c.MaxOverhead)))
	case len(c.Owner) > 0 && !c.Marks:
		return cli.Usage("tare cost --pid N --marks --owner NAME", errors.New("--owner does nothing without --marks"))
	case c.Waits && c.outside():
		return cli.Usage("tare cost URL --waits, or tare trace --pid N", errors.New("--waits needs the service's execution trace"))
	}
	return nil
}

// target returns what to watch, and its name for people.
func (c *costCmd) target() (bpf.Options, string, error) {
	o := bpf.Options{PID: c.PID, Hz: c.Hz}
	if o.Hz == 0 {
		o.Hz = bpf.DefaultHz
	}
	switch {
	case c.PID != 0:
		return o, "process " + strconv.Itoa(c.PID), nil
	case c.Container != "":
		dir, err := bpf.Container(c.Container)
		o.Cgroup = dir
		if err != nil && !errors.Is(err, cost.ErrNotSupported) {
			err = &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "it takes the ID, not the name: docker ps, podman ps and crictl ps show it"}
		}
		return o, "container " + c.Container, err
	}
	dir, err := group(c.Cgroup)
	if err != nil {
		return o, "", err
	}
	o.Cgroup = dir
	return o, "group " + c.Cgroup, nil
}

// groups is where control groups are mounted.
const groups = "/sys/fs/cgroup"

// group finds the directory of a control group: as it is named, or below where
// groups are mounted. Every group has a file that lists its processes.
func group(name string) (string, error) {
	dirs := []string{name}
	if !filepath.IsAbs(name) {
		dirs = append(dirs, filepath.Join(groups, name))
	}
	what := errors.New("there is no such directory")
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		what = errors.New("it is a directory, but no control group: it holds no cgroup.procs")
		if _, err = os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			return filepath.EvalSymlinks(dir) // of a link the kernel's tree would not be walked
		}
	}
	return "", &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("--cgroup %s: %w", name, what),
		Hint: "control groups are directories below " + groups + "; /proc/N/cgroup names that of process N"}
}

// watch samples from outside, under load if that is asked for, and keeps what was
// seen if it is interrupted.
func (c *costCmd) watch(ctx context.Context, t *cli.Terminal, b *bill) error {
	o, name, err := c.target()
	if err != nil {
		return unsampled(err)
	}
	if err := c.sample(ctx, t, b, sampling{o, name}); err != nil {
		return err
	}
	if !c.Marks {
		return nil
	}
	var m *probe.Measurement
	if err = ctx.Err(); err == nil {
		m, err = c.mark(ctx, t, stacks(b.cpu))
	}
	b.mark(ctx, m, err)
	return nil
}

// mark takes over what watching calls gave, or why it gave nothing: what was sampled
// is shown all the same.
func (b *bill) mark(ctx context.Context, m *probe.Measurement, err error) {
	interrupted := ctx.Err() != nil
	switch {
	case err != nil && interrupted:
		b.warnings = append(b.warnings, errors.New("interrupted before calls were watched: there are no counts and times of calls (--marks)"))
		return
	case err != nil:
		b.unmarked = err
		return
	case interrupted:
		b.warnings = append(b.warnings, fmt.Errorf("interrupted: calls were watched for %s", unit.Format(float64(m.Attached), unit.Nanoseconds)))
	}
	b.marked = m
	if b.window.Requests > 0 || m.Attached <= 0 {
		return
	}
	b.window.Requests = math.Round(m.Requests * b.window.Duration.Seconds() / m.Attached.Seconds())
	if b.window.Requests > 0 {
		b.warnings = append(b.warnings, errors.New("requests were counted while calls were watched, after the sampling: costs a request are told by as many a second, and before there may have been more or fewer"))
	}
}

// mark watches calls by the clock, under load of its own if that is asked for: it
// slows the service down, and what was sampled is not to show that.
func (c *costCmd) mark(ctx context.Context, t *cli.Terminal, sampled []cost.Stack) (*probe.Measurement, error) {
	const longest = 10 * time.Second
	loading, end := context.WithCancel(ctx)
	defer end()
	under, err := c.offer(loading)
	if err != nil {
		return nil, c.unloaded(err)
	}
	m, err := marks{PID: c.PID, Owners: c.Owner, Sampled: sampled, For: min(c.For, longest), Most: float64(c.MaxOverhead) / 100}.watch(ctx, t)
	end()
	if under != nil {
		err = errors.Join(err, <-under.done)
	}
	return m, err
}

// sampling is what is watched, and its name.
type sampling struct {
	bpf.Options
	name string
}

// sample takes the profile.
func (c *costCmd) sample(ctx context.Context, t *cli.Terminal, b *bill, o sampling) error {
	loading, end := context.WithCancel(ctx)
	defer end()
	if o.PID != 0 {
		if _, err := bpf.CPU(o.PID); err != nil {
			return unsampled(fmt.Errorf("looking at process %d: %w", o.PID, err))
		}
	}
	requests := c.count(ctx, o)
	defer requests.close()
	under, err := c.offer(loading)
	if err != nil {
		return c.unloaded(err)
	}
	t.Note("sampling %s for %s at %d Hz from outside%s; expected to cost it %s of the CPU it uses",
		o.name, c.For, o.Hz, requests.text(), unit.Format(bpf.Price(o.Hz), unit.Share))
	s, err := bpf.Start(o.Options)
	if err != nil {
		end()
		if under != nil {
			<-under.done
		}
		return unsampled(err)
	}
	over := time.NewTimer(c.For)
	defer over.Stop()
	requests.run(ctx, c.For)
	select {
	case <-over.C:
	case <-ctx.Done():
		b.warnings = append(b.warnings, errors.New("interrupted: what was seen until then is shown"))
	case <-s.Ended():
	}
	requests.end()
	p, err := s.Stop()
	if err != nil {
		return unsampled(err)
	}
	b.sampled(p, o)
	b.take(requests, p.Processes)
	const busy = 0.01
	if o.PID != 0 && p.CPU.Seconds() < busy*p.Duration.Seconds() {
		if why := proc.Idle(o.PID); why != nil {
			b.warnings = append(b.warnings, why)
		}
	}
	if under != nil {
		return under.count(end, b, looked{})
	}
	return nil
}

// unloaded adds to why nothing answers a load that the process may listen elsewhere.
func (c *costCmd) unloaded(err error) error {
	if c.PID == 0 {
		return err
	}
	if hint := ownNetwork(c.PID, "cost"); hint != "" {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: hint}
	}
	return err
}

// sampled takes a profile over.
func (b *bill) sampled(p *bpf.Profile, o sampling) {
	b.cpu = pprof.New(pprof.CPU, p.Duration, p.Stacks)
	b.window.Duration = p.Duration
	b.warnings = append(b.warnings, p.Warnings...)
	b.source = o.name
	if o.PID != 0 || len(p.Processes) == 1 {
		b.source += fmt.Sprintf(" (%s)", strings.Join(described(p.Processes[:1], o.PID == 0), ""))
	} else {
		const most = 5
		b.source += fmt.Sprintf(", %d processes (%s)", len(p.Processes), strings.Join(described(p.Processes[:min(most, len(p.Processes))], true), "; "))
	}
	b.outside = &cost.Sampled{Hz: o.Hz, Clock: p.Clock, Stacks: p.Seen, Lost: p.Lost}
	if p.Sampled > 0 { // by a timer
		b.outside.Late = int64(bpf.Lateness(o.Hz))
	}
	if p.CPU > 0 {
		b.outside.Covered = p.Sampled.Seconds() / p.CPU.Seconds()
		b.outside.Cost = p.Watching.Seconds() / p.CPU.Seconds()
	}
}

// described says what processes run, with their numbers if asked to.
func described(all []bpf.Process, number bool) []string {
	var out []string
	for _, p := range all {
		text := p.Name
		if p.Go != "" {
			text += ", " + p.Go
		}
		if number {
			text = strconv.Itoa(p.PID) + " " + text
		}
		out = append(out, text)
	}
	return out
}

// mostLate is how late a clock may tick, in nanoseconds, without a word of it: a
// processor's own timer takes one or two microseconds.
const mostLate = 5_000

// samplingText says how the CPU was sampled.
func samplingText(s *cost.Sampled) string {
	text := fmt.Sprintf("%s stacks at %d Hz, by %s.", unit.Number(float64(s.Stacks)), s.Hz, s.Clock)
	switch {
	case s.Covered >= 1:
		text += fmt.Sprintf("\nBy themselves they stand for %.1f %% of the CPU that the kernel counted, to which\nthe table is scaled.", 100*s.Covered)
	case s.Covered > 0:
		text += fmt.Sprintf("\nThey stand for %.1f %% of the CPU that the kernel counted; the rest is the row\n%s.", 100*s.Covered, bpf.Unseen)
	}
	text += fmt.Sprintf("\nThe program in the kernel that takes them ran for %s of it.", unit.Format(s.Cost, unit.Share))
	if s.Late > mostLate {
		text += fmt.Sprintf("\nThe timer rings %s late here, sooner where the kernel wakes a thread\nelsewhere: what runs that long after it is charged with less, the kernel with\nmore.", unit.Format(float64(s.Late), unit.Nanoseconds))
	}
	return text
}

// unsampled explains why a process cannot be sampled.
func unsampled(err error) error {
	switch {
	case errors.Is(err, bpf.ErrEnded):
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "is it still running?"}
	case errors.Is(err, cost.ErrNotSupported):
		return &cli.Failure{Status: cli.ExitFailed, Err: err,
			Hint: "tare cost URL needs nothing of this, only net/http/pprof in the service; docs/cost.md says what --pid needs"}
	}
	return err
}
