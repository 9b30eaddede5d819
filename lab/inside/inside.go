// Package inside profiles a process by its own Go runtime.
//
// An arm built on arms/arm is asked on its control socket. Any other Go program is asked by
// HTTP if it exposes net/http/pprof on one of its ports. What it answers is as of that
// process alone, and says nothing of how many requests there were: who loads it counts them.
package inside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/arm"
)

// Recorder profiles one process. It is not safe for concurrent use.
type Recorder struct {
	from    source
	earlier *pprof.Profile // allocated before
	cpu     []byte
}

// source is where profiles come from.
type source interface {
	// Allocated is all that the process has allocated so far.
	Allocated(ctx context.Context) (*pprof.Profile, error)
	// CPU is where its CPU time went over d, in pprof's form.
	CPU(ctx context.Context, d time.Duration) ([]byte, error)
}

// New returns a recorder that has noted what the process has allocated so far. The error
// wraps [arm.ErrNoControl] if the process shows no profiles.
func New(ctx context.Context, proc *arm.Process) (*Recorder, error) {
	r := &Recorder{from: control{proc}}
	var err error
	if r.earlier, err = r.from.Allocated(ctx); !errors.Is(err, arm.ErrNoControl) {
		return r, err
	}
	s := Exposed(ctx, proc)
	if s == nil {
		return nil, fmt.Errorf("%w, and exposes no net/http/pprof", err)
	}
	r.from = exposed{s}
	r.earlier, err = r.from.Allocated(ctx)
	return r, err
}

// Watch profiles the process over d. By HTTP that is a number of whole seconds.
func (r *Recorder) Watch(ctx context.Context, d time.Duration) (err error) {
	r.cpu, err = r.from.CPU(ctx, d)
	return err
}

// Taken are the profiles of a process.
type Taken struct {
	CPU, Allocs *pprof.Profile // of what was allocated since New
	RawCPU      []byte         // in pprof's form
}

// Profiles returns what was recorded. It is called once, after Watch.
func (r *Recorder) Profiles(ctx context.Context) (t Taken, err error) {
	later, err := r.from.Allocated(ctx)
	if err != nil {
		return t, err
	}
	if t.Allocs, err = later.Since(r.earlier); err != nil {
		return t, err
	}
	t.RawCPU = r.cpu
	t.CPU, err = pprof.Read(bytes.NewReader(r.cpu))
	return t, err
}

// rate is how many samples a second of CPU time an arm is asked for: as many as
// kernels usually have ticks. Where there are fewer, the profile's nanoseconds
// are too few, which scaling to the process's CPU time sets right.
const rate = 250

// control is an arm's control socket.
type control struct{ proc *arm.Process }

// Allocated has the collector run first, which publishes what was allocated.
func (c control) Allocated(ctx context.Context) (*pprof.Profile, error) {
	if err := c.proc.GC(ctx); err != nil {
		return nil, err
	}
	raw, err := c.proc.Profile(ctx, "heap", 0)
	if err != nil {
		return nil, err
	}
	return pprof.Read(bytes.NewReader(raw))
}

func (c control) CPU(ctx context.Context, d time.Duration) ([]byte, error) {
	return c.proc.CPUProfile(ctx, d, rate)
}

// exposed is a service that exposes net/http/pprof.
type exposed struct{ *pprof.Service }

func (e exposed) CPU(ctx context.Context, d time.Duration) ([]byte, error) {
	p, err := e.Service.CPU(ctx, d)
	if err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	err = p.Write(&raw)
	return raw.Bytes(), err
}

// askWithin bounds the search for profiles at one address.
const askWithin = 2 * time.Second

// Exposed returns the profiles that a process exposes by HTTP, on the port on which it is
// loaded or on another of its ports; nil if it exposes none.
func Exposed(ctx context.Context, proc *arm.Process) *pprof.Service {
	for _, base := range addresses(proc) {
		s, err := pprof.Find(base)
		if err != nil {
			continue
		}
		brief, cancel := context.WithTimeout(ctx, askWithin)
		_, err = s.Memory(brief) // which nothing but Go's own end point shows
		cancel()
		if err == nil {
			return s
		}
	}
	return nil
}

// addresses are where a process may be asked, that of its load first.
func addresses(proc *arm.Process) []string {
	var all []string
	if u, err := url.Parse(proc.URL()); err == nil {
		all = append(all, u.Scheme+"://"+u.Host)
	}
	listening, err := proc.Listening()
	if err != nil { // of a URL, or on a system that does not report it
		return all
	}
	for _, addr := range listening {
		if base := "http://" + addr; !slices.Contains(all, base) {
			all = append(all, base)
		}
	}
	return all
}
