package load

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"runtime"
	"syscall"
	"time"

	"github.com/tarehq/tare/load/internal/sys"
	"github.com/tarehq/tare/stats/unit"
)

// What the zero values of Options mean.
const (
	defaultClosed = 64
	defaultOpen   = 4096
	// openStreams is as many as servers commonly allow, closedStreams 1: the
	// load is stated in connections there.
	openStreams      = 100
	closedStreams    = 1
	defaultDuration  = 10 * time.Second
	defaultTimeout   = 30 * time.Second
	defaultMaxAnswer = 64 << 20
	defaultSlice     = time.Second
	// defaultSpin covers what a sleeping thread's wake-up takes even on a
	// virtual machine, mostly.
	defaultSpin = 60 * time.Microsecond
	// loopRate is what a second loop is not worth waking up for.
	loopRate = 25_000.0
)

// Limits beyond which the generator itself would break down.
const (
	maxThreads = 1024    // the runtime gives up at 10,000
	maxStreams = 1 << 14 // in flight over all HTTP/2 connections: each takes some 35 KB
	// maxPipeline keeps what is sent at once within what servers and sockets
	// take without answers being read.
	maxPipeline = 1024
)

// newPlan checks o and works out the run.
func newPlan(o *Options) (*plan, error) {
	if err := checkOptions(o); err != nil {
		return nil, fmt.Errorf("checking options: %w", err)
	}
	s, err := newScript(o)
	if err != nil {
		return nil, err
	}
	p := &plan{opts: o, script: s, statusAsked: s.expectsStatus(), open: o.Schedule != nil, maxFlight: math.MaxInt64}
	if err := p.pickEngine(); err != nil {
		return nil, fmt.Errorf("checking options: %w", err)
	}
	p.fill()
	if err := cmp.Or(p.checkDescriptors(), p.checkStreams(), p.checkPipeline()); err != nil {
		return nil, fmt.Errorf("checking options: %w", err)
	}
	return p, nil
}

// checkOptions refuses values outside their ranges.
func checkOptions(o *Options) error {
	for _, v := range []struct {
		name string
		n    int64
	}{
		{"Connections", int64(o.Connections)}, {"MaxInFlight", int64(o.MaxInFlight)},
		{"Duration", int64(o.Duration)}, {"Requests", o.Requests}, {"WarmUp", int64(o.WarmUp)},
		{"Streams", int64(o.Streams)}, {"Pipeline", int64(o.Pipeline)}, {"Threads", int64(o.Threads)}, {"MaxAnswer", o.MaxAnswer}, {"Slice", int64(o.Slice)},
	} {
		if v.n < 0 {
			return fmt.Errorf("%s is negative: %d", v.name, v.n)
		}
	}
	if o.Threads > maxThreads {
		return fmt.Errorf("%d threads are too many: want at most %d", o.Threads, maxThreads)
	}
	if o.Slice != 0 && o.Slice < time.Millisecond {
		return fmt.Errorf("a slice of %v is too short: want 1ms or more", o.Slice)
	}
	if o.Schedule == nil {
		return nil
	}
	if err := o.Schedule.Validate(); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	return nil
}

// pickEngine picks what drives the requests.
func (p *plan) pickEngine() error {
	o := p.opts
	obstacle := p.obstacle()
	switch {
	case o.Protocol != HTTP1 && o.Protocol != HTTP2 && o.Protocol != HTTP3:
		return fmt.Errorf("protocol %q is unknown: want \"\", %q or %q", o.Protocol, HTTP2, HTTP3)
	case o.Protocol == HTTP3 && (!p.script.https || o.Unix != "" || o.Proxy != ""):
		return errors.New("HTTP/3 needs https URLs, and no Unix socket or proxy")
	case o.Unix != "" && o.Proxy != "":
		return errors.New("a Unix socket is not reached through a proxy: leave one of the two out")
	case o.Engine != Auto && o.Engine != Epoll && o.Engine != Goroutines:
		return fmt.Errorf("engine %q is unknown: want %q or %q", o.Engine, Epoll, Goroutines)
	case o.Engine == Epoll && obstacle != nil:
		return fmt.Errorf("%w; use the %s engine", obstacle, Goroutines)
	case o.Engine != Goroutines && obstacle == nil:
		p.engine, p.drive = Epoll, runEpoll
	case o.Protocol != HTTP1:
		p.engine, p.drive = Goroutines, runStreams
	default:
		p.engine, p.drive = Goroutines, runGoroutines
	}
	return nil
}

// obstacle is why event loops cannot drive the requests; nil if they can.
func (p *plan) obstacle() error {
	o := p.opts
	switch {
	case o.Protocol == HTTP3:
		return errors.New("the epoll engine does not speak HTTP/3")
	case (p.script.https || o.Protocol == HTTP2) && o.Proxy != "":
		return errors.New("the epoll engine opens no tunnels through a proxy")
	case o.TLS != nil && o.TLS.Renegotiation != tls.RenegotiateNever:
		return errors.New("the epoll engine's TLS does not renegotiate")
	case !epollWorks:
		return fmt.Errorf("the epoll engine needs Linux: %w", errors.ErrUnsupported)
	}
	return nil
}

// fill sets what o leaves to us.
func (p *plan) fill() {
	o := p.opts
	if p.open {
		setDefault(&o.Connections, defaultOpen)
	}
	setDefault(&o.Connections, defaultClosed)
	if p.open {
		setDefault(&o.Streams, openStreams)
	}
	setDefault(&o.Streams, closedStreams)
	if p.open && o.MaxInFlight > 0 {
		p.maxFlight = int64(o.MaxInFlight)
	}
	if _, ends := p.length(); !ends && o.Requests == 0 {
		setDefault(&o.Duration, defaultDuration)
	}
	setDefault(&o.Timeout, defaultTimeout)
	o.Timeout = max(o.Timeout, 0)
	setDefault(&o.MaxAnswer, defaultMaxAnswer)
	setDefault(&o.Slice, defaultSlice)
	setDefault(&o.Seed, 1)
	p.budget.Store(o.Requests)
	p.threads = p.pickThreads()
	if o.Spin == 0 && p.threads < runtime.NumCPU() {
		o.Spin = defaultSpin
	}
	o.Spin = max(o.Spin, 0)
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// length is the open loop's, if it ends by itself.
func (p *plan) length() (time.Duration, bool) {
	if !p.open {
		return 0, false
	}
	return p.opts.Schedule.Length()
}

// pickThreads is how many CPUs the engine may use.
func (p *plan) pickThreads() int {
	n := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	if p.engine != Epoll {
		return n
	}
	if p.opts.Threads > 0 {
		n = p.opts.Threads
	} else if p.open {
		n = min(n, 1+int(p.peakRate()/loopRate))
	}
	return min(n, p.opts.Connections)
}

// peakRate is the highest rate of the schedule, or of its part.
func (p *plan) peakRate() float64 {
	var peak float64
	for _, ph := range p.opts.Schedule.Phases {
		peak = max(peak, ph.From, ph.To)
	}
	return peak / float64(max(1, p.opts.Schedule.Parts))
}

// checkDescriptors refuses more connections than can be opened. In the open
// loop the number is a bound that need not be reached.
func (p *plan) checkDescriptors() error {
	const others = 32 // files, loops and the runtime's own
	limit := sys.DescriptorLimit()
	if need := uint64(p.opts.Connections) + others; !p.open && need > limit {
		return fmt.Errorf("%w: %s would take about %d file descriptors and the limit is %d: raise it with ulimit -n %d or use fewer connections",
			syscall.EMFILE, unit.Plural(p.opts.Connections, "connection"), need, limit, need)
	}
	return nil
}

// checkPipeline refuses what cannot be sent at once.
func (p *plan) checkPipeline() error {
	o := p.opts
	if o.Pipeline <= 1 {
		return nil
	}
	switch {
	case p.open:
		return errors.New("pipelined requests begin together, and a schedule begins each at its own time: leave one of the two out")
	case p.engine != Epoll || o.Protocol != HTTP1:
		return errors.New("the epoll engine alone pipelines, and does not pipeline but HTTP/1.1")
	case o.Pipeline > maxPipeline:
		return fmt.Errorf("%d requests at once are too many: want at most %d", o.Pipeline, maxPipeline)
	case p.script.share > 0:
		return errors.New("requests on connections of their own cannot be pipelined")
	case len(p.script.endpoints) > 1:
		return errors.New("pipelined requests go to one host, and the targets name more")
	}
	for _, b := range p.script.targets {
		if b.tail != nil {
			return errors.New("requests with long bodies cannot be pipelined: the server may answer before it reads on")
		}
	}
	return nil
}

// checkStreams refuses more streams than can be kept busy. In the open loop the
// engine keeps to the limit: what finds no stream free waits.
func (p *plan) checkStreams() error {
	if o := p.opts; !p.open && o.Protocol != HTTP1 && o.Streams > maxStreams/o.Connections {
		return fmt.Errorf("%s with %s each are too many: want at most %d requests in flight", unit.Plural(o.Connections, "connection"), unit.Plural(o.Streams, "stream"), maxStreams)
	}
	return nil
}
