// Package agent makes loads for a coordinator on another host.
//
// An Agent listens for coordinators, who show a certificate, and serves one at a time. What it
// may load, and how much, its Config says. If nothing is heard of the coordinator for
// [wire.Silence], the load ends.
package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

const (
	shakeWithin = 5 * time.Second // a TLS handshake
	drainFor    = time.Second     // what a refused peer still sends is read

	// Handshakes under way at once; further connections are closed. Whoever has no certificate
	// cannot keep a coordinator on another host out alone.
	mostShaking   = 64
	mostOfOneHost = 8
)

// Agent makes loads for one coordinator at a time. Safe for concurrent use.
type Agent struct {
	config  Config
	tls     *tls.Config
	version string
	log     *slog.Logger
	base    time.Time // from which its clock counts

	mu      sync.Mutex
	held    string         // the coordinator's address; "" while there is none
	shaking map[string]int // handshakes under way, by the peer's host
}

// New returns an agent of tare's version. config.Certs is not read: security is what
// certs.Agent made of it.
func New(config Config, security *tls.Config, version string, log *slog.Logger) (*Agent, error) {
	if err := config.fill(); err != nil {
		return nil, fmt.Errorf("configuring the agent: %w", err)
	}
	return &Agent{
		config: config, tls: security, version: version, log: log, base: time.Now(),
		shaking: map[string]int{},
	}, nil
}

// Serve serves coordinators until ctx ends, and returns nil then. Loads end with it. It
// closes the listener.
func (a *Agent) Serve(ctx context.Context, listener net.Listener) error {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accepting coordinators: %w", err)
		case err != nil: // no descriptor is free, say
			a.log.Warn("accepting a connection", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		if a.admit(conn) {
			sessions.Go(func() { a.serve(ctx, conn) })
		} else {
			conn.Close()
		}
	}
}

// admit counts a handshake, unless too many are under way.
func (a *Agent) admit(conn net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := 0
	for _, n := range a.shaking {
		all += n
	}
	host := hostOf(conn)
	if all >= mostShaking || a.shaking[host] >= mostOfOneHost {
		return false
	}
	a.shaking[host]++
	return true
}

// shaken counts a handshake no longer.
func (a *Agent) shaken(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	host := hostOf(conn)
	if a.shaking[host]--; a.shaking[host] == 0 {
		delete(a.shaking, host)
	}
}

// hostOf is the address of a peer, without its port.
func hostOf(conn net.Conn) string {
	peer := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}

// serve serves one connection.
func (a *Agent) serve(ctx context.Context, conn net.Conn) {
	secure := tls.Server(conn, a.tls)
	shaking, cancel := context.WithTimeout(ctx, shakeWithin)
	err := secure.HandshakeContext(shaking)
	cancel()
	peer := conn.RemoteAddr().String()
	if err != nil {
		a.log.Warn("refused", "peer", peer, "error", err)
		drain(conn)
	}
	a.shaken(conn)
	if err != nil {
		return
	}
	s := &session{agent: a, link: wire.NewLink(secure, a.config.Message), log: a.log.With("coordinator", peer)}
	defer s.link.Close()
	defer context.AfterFunc(ctx, s.link.Close)()
	go s.link.KeepAlive()
	if err := s.greet(peer); err != nil {
		s.log.Warn("refused", "error", err)
		return
	}
	defer a.release()
	s.log.Info("coordinator came")
	err = s.listen(ctx)
	s.log.Info("coordinator went", "reason", err)
}

// drain closes a connection once its peer has had time to read why. One that is closed with
// unread bytes is reset, and the reason lost.
func drain(conn net.Conn) {
	defer conn.Close()
	if conn.SetReadDeadline(time.Now().Add(drainFor)) == nil {
		_, _ = io.CopyN(io.Discard, conn, wire.Chunk) // whatever comes of it
	}
}

// hold gives the agent to a coordinator, if no other has it.
func (a *Agent) hold(peer string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held != "" {
		return fmt.Errorf("%w: the coordinator at %s has it", wire.ErrBusy, a.held)
	}
	a.held = peer
	return nil
}

func (a *Agent) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = ""
}

func (a *Agent) clock() int64 { return int64(time.Since(a.base)) }

// session is one coordinator's.
type session struct {
	agent *Agent
	link  *wire.Link
	log   *slog.Logger

	job   *wire.Job          // ready to start; nil if none is
	stop  context.CancelFunc // of the load under way; nil if none is
	ended chan struct{}      // closed when that has ended
}

// greet compares versions and takes the agent for the coordinator.
func (s *session) greet(peer string) error {
	m, err := s.link.Receive()
	if err != nil {
		return err
	}
	refuse := func(err error) error { return cmp.Or(s.link.Send(wire.Refusal(err)), err) }
	switch {
	case m.Kind != wire.KindHello:
		return refuse(fmt.Errorf("got message %q; want %q first", m.Kind, wire.KindHello))
	case m.Protocol != wire.Protocol || m.Version != s.agent.version:
		return refuse(fmt.Errorf("%w: the agent is tare %s (protocol %d) and the coordinator %s (protocol %d)",
			wire.ErrVersion, s.agent.version, wire.Protocol, m.Version, m.Protocol))
	}
	if err := s.agent.hold(peer); err != nil {
		return refuse(err)
	}
	if err := s.link.Send(&wire.Message{Kind: wire.KindHello, Protocol: wire.Protocol, Version: s.agent.version}); err != nil {
		s.agent.release()
		return err
	}
	return nil
}

// listen does what the coordinator says until it goes.
func (s *session) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		s.link.Close() // whoever sends gives up
		s.wait()
	}()
	for {
		m, err := s.link.Receive()
		switch {
		case errors.Is(err, wire.ErrTooLarge):
			err = s.link.Send(wire.Refusal(fmt.Errorf("%w: %w", wire.ErrNotAllowed, err)))
		case err == nil:
			err = s.obey(ctx, m)
		}
		if err != nil {
			return err
		}
	}
}

// wait waits for the load under way, if there is one, to end.
func (s *session) wait() {
	if s.stop != nil {
		<-s.ended
	}
}

func (s *session) obey(ctx context.Context, m *wire.Message) error {
	switch m.Kind {
	case wire.KindPing:
		now := s.agent.clock()
		return s.link.Send(&wire.Message{Kind: wire.KindPong, Asked: m.Asked, Received: now, Sent: s.agent.clock()})
	case wire.KindJob:
		return s.take(m.Job)
	case wire.KindStart:
		if s.job == nil {
			return errors.New("was to start without a job")
		}
		s.begin(ctx, m.At)
		return nil
	case wire.KindStop:
		if s.stop != nil {
			s.stop()
		}
		s.job = nil
		return nil
	}
	return fmt.Errorf("got message %q, which a coordinator does not send", m.Kind)
}

// take takes a job, if it is within bounds and nothing is under way.
func (s *session) take(j *wire.Job) error {
	if s.stop != nil {
		select {
		case <-s.ended:
			s.stop()
			s.stop = nil
		case <-time.After(wire.Beat): // it has sent its result and is about to end
			return s.link.Send(wire.Refusal(errors.New("the load before has not ended")))
		}
	}
	if j == nil {
		return errors.New("a job is missing from its message")
	}
	if err := s.agent.config.check(j); err != nil {
		s.log.Warn("refused a job", "error", err)
		return s.link.Send(wire.Refusal(err))
	}
	if _, err := j.Unpack(); err != nil {
		return s.link.Send(wire.Refusal(err))
	}
	s.job = j
	s.link.Living.Store(true) // between loads the coordinator does not read
	return s.link.Send(&wire.Message{Kind: wire.KindReady})
}

// begin runs the job in the background, from the time at on by the agent's clock.
func (s *session) begin(ctx context.Context, at int64) {
	j := s.job
	s.job = nil
	// A load that has no end of its own ends at the longest that is allowed.
	ctx, s.stop = context.WithTimeoutCause(ctx, s.agent.config.Duration+time.Minute, errors.New("the agent allows no longer load"))
	ended := make(chan struct{})
	s.ended = ended
	go func() {
		defer close(ended)
		s.run(ctx, j, at)
	}()
}

// run makes the load and sends what it measured.
func (s *session) run(ctx context.Context, j *wire.Job, at int64) {
	o, err := j.Unpack()
	if err != nil {
		s.fail(err)
		return
	}
	s.log.Info("load begins", "target", load.Shown(o.Targets[0].URL), "targets", len(o.Targets))
	r := newReporter(s.link)
	o.Sealed, o.Progress = r.seal, r.progress
	start := s.agent.base.Add(time.Duration(at))
	if o.WarmUp > 0 {
		measured := start.Add(o.WarmUp)
		sleepUntil(ctx, start)
		o.WarmUp = max(1, time.Until(measured))
	} else {
		o.Mark = func(begin bool) {
			if begin {
				sleepUntil(ctx, start) // the load has resolved its names by now
			}
		}
	}
	res, err := load.Run(ctx, o)
	r.finish()
	if res == nil {
		s.fail(err)
		return
	}
	m := wire.PackResult(res, s.agent.base)
	if err != nil {
		m.Text = err.Error()
	}
	s.log.Info("load ended", "scheduled", res.Counts.Scheduled, "answered", res.Counts.Answered(), "early", res.Ended)
	defer s.link.Living.Store(false)
	if err := s.link.Send(m); err != nil {
		s.log.Warn("sending the result", "error", err)
	}
}

func (s *session) fail(err error) {
	s.log.Warn("load failed", "error", err)
	defer s.link.Living.Store(false)
	if err := s.link.Send(&wire.Message{Kind: wire.KindFail, Text: err.Error()}); err != nil {
		s.log.Warn("saying so", "error", err)
	}
}

// sleepUntil returns at t, or when ctx ends.
func sleepUntil(ctx context.Context, t time.Time) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// reporting is how long after a part the next is due. The load looks around four times a
// second.
const reporting = 900 * time.Millisecond

// reporter sends parts without keeping the load waiting.
type reporter struct {
	parts  chan *wire.Message
	done   chan struct{} // closed when all are sent
	slices []load.Slice  // not handed over
	hists  [][]byte
	last   time.Time
}

func newReporter(l *wire.Link) *reporter {
	r := &reporter{parts: make(chan *wire.Message, 4), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for m := range r.parts {
			_ = l.Send(m) // a failure closes the link: the session ends, and the load with it
		}
	}()
	return r
}

func (r *reporter) seal(s load.Slice, times *hist.Hist) {
	r.slices = append(r.slices, s)
	r.hists = append(r.hists, times.Append(nil))
}

func (r *reporter) progress(s load.Snapshot) {
	if now := time.Now(); now.Sub(r.last) >= reporting && r.offer(s) {
		r.last = now
	}
}

// offer hands over what there is, unless what was handed over before is not sent yet.
func (r *reporter) offer(s load.Snapshot) bool {
	select {
	case r.parts <- r.message(s):
		r.slices, r.hists = nil, nil
		return true
	default:
		return false
	}
}

func (r *reporter) message(s load.Snapshot) *wire.Message {
	return &wire.Message{Kind: wire.KindPart, Hists: r.hists, Part: &wire.Part{
		Elapsed: s.Elapsed, Total: s.Total, Rate: s.Rate, Flight: s.Flight, Counts: wire.TallyOf(s.Counts), Slices: r.slices,
	}}
}

// finish sends the slices that are left, which the load seals at its end.
func (r *reporter) finish() {
	if len(r.slices) > 0 {
		r.parts <- &wire.Message{Kind: wire.KindPart, Hists: r.hists, Part: &wire.Part{Final: true, Slices: r.slices}}
	}
	close(r.parts)
	<-r.done
}
