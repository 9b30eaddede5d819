package watch

import (
	"context"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/internal/task"
)

// poll has a service profile itself for a part of each interval: its profiler costs it
// much more than sampling from outside does.
type poll struct {
	target *capture.Target
	find   *finder
	part   time.Duration // for which it is profiled

	pid    int           // the service's process; 0: not known yet, or not of this machine
	before time.Duration // CPU it had used at the beginning
	cancel context.CancelFunc
	done   chan struct{} // nil: not under way
	seen   *capture.Capture
	err    error
}

// profiled is the part of an interval for which a service profiles itself, in whole
// seconds.
func profiled(every time.Duration) time.Duration {
	const share, most = 10, 5 * time.Second
	return min(most, max(time.Second, (every/share).Round(time.Second)))
}

// addTarget adds a service whose profiles are polled.
func (w *Watcher) addTarget(ctx context.Context, s capture.Service, by capture.Source) error {
	t, err := s.Find(ctx, by)
	if err != nil {
		return err
	}
	w.polls = append(w.polls, &poll{target: t, find: w.find, part: profiled(w.o.Every), pid: t.PID})
	return nil
}

// begin begins to profile.
func (p *poll) begin(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(ctx)
	p.before = 0
	if used, err := bpf.CPU(p.pid); p.pid != 0 && err == nil {
		p.before = used
	}
	done := make(chan struct{})
	p.done = done
	go func() {
		defer close(done)
		p.seen, p.err = capture.Run(ctx, p.target, capture.Options{For: p.part})
	}()
}

// end returns what was seen in an interval, of which the profile is a part.
func (p *poll) end(over time.Duration) (Seen, error) {
	<-p.done
	p.cancel()
	p.done = nil
	if p.err != nil {
		return Seen{}, p.err
	}
	known := p.pid == p.seen.PID && p.before > 0
	p.pid = p.seen.PID
	s := Seen{Build: p.build(), Window: cost.Window{Duration: over}, Warnings: p.seen.Warnings}
	var sampled float64
	for _, one := range p.seen.CPU.Stacks {
		sampled += one.Value
	}
	scale := over.Seconds() / p.seen.Window.Duration.Seconds()
	if used, err := bpf.CPU(p.pid); known && err == nil && sampled > 0 {
		scale = float64(used-p.before) / sampled
	}
	for _, one := range p.seen.CPU.Stacks {
		one.Value *= scale
		s.Stacks = append(s.Stacks, one)
	}
	s.CPU = time.Duration(sampled * scale)
	if p.pid != 0 {
		s.PIDs = []int{p.pid}
	}
	return s, nil
}

// build says what program was seen.
func (p *poll) build() Build {
	if b, ok := p.find.build(p.pid); ok {
		return b
	}
	b := Build{Service: task.Printable(p.seen.CPU.Program()), ID: p.seen.CPU.BuildID()}
	if b.Service == "" {
		b.Service = p.target.Name
	}
	return b
}

// stop ends what is under way.
func (p *poll) stop() {
	if p.done != nil {
		p.cancel()
		<-p.done
		p.done = nil
	}
}
