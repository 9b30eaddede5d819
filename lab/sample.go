package lab

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/doctor/proc"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// sampler is the kernel, which looks at any process.
type sampler struct {
	s    *session
	pid  int // 0: not known
	seen *bpf.Profile
}

// prepare tries whether this system can at all.
func (k *sampler) prepare(ctx context.Context) error {
	k.pid = k.s.pid(ctx)
	w, err := k.start()
	if err != nil {
		return err
	}
	if _, err := w.Stop(); err != nil {
		return fmt.Errorf("stopping a trial of it: %w", err)
	}
	return nil
}

func (k *sampler) start() (*bpf.Sampler, error) {
	if k.pid == 0 {
		return nil, fmt.Errorf("the arm is a URL, its process is not known: %w", cost.ErrNotSupported)
	}
	return bpf.Start(bpf.Options{PID: k.pid})
}

// pid is the process that serves, also one on this machine that runs already; 0 is unknown.
func (s *session) pid(ctx context.Context) int {
	if pid := s.proc.PID(); pid != 0 {
		return proc.Server(pid, s.proc.Addr())
	}
	pid, _ := capture.Service{URL: s.proc.URL()}.Process(ctx) // 0 where it is another machine's or another user's
	return pid
}

func (k *sampler) watch(ctx context.Context, d time.Duration) error {
	w, err := k.start()
	if err != nil {
		return err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	k.seen, err = w.Stop()
	return err
}

func (k *sampler) readProfiles(_ context.Context, c *record.Capture) (record.Seen, []record.Profile, error) {
	seen := record.Seen{Source: study.EBPF}
	if len(k.seen.Stacks) == 0 {
		return seen, nil, errNothingSeen
	}
	p := pprof.New(pprof.CPU, k.seen.Duration, k.seen.Stacks)
	var kept bytes.Buffer
	if err := p.Write(&kept); err != nil {
		return seen, nil, fmt.Errorf("keeping the samples: %w", err)
	}
	for _, w := range k.seen.Warnings {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %v", study.EBPF, w))
	}
	seen.Bill, _ = bill(study.EBPF, c, p, nil)
	if k.seen.CPU > 0 {
		seen.Share = float64(k.seen.Sampled) / float64(k.seen.CPU)
	}
	return seen, []record.Profile{{Source: study.EBPF, Kind: "cpu", Data: kept.Bytes()}}, nil
}
