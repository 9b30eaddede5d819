// Package fleet makes one load with generators on many hosts.
//
// An agent is a tare process on a host that makes loads, with package load, for one
// coordinator at a time. The coordinator, a Fleet, gives each agent its share of a load: of
// even arrivals every n-th, of random ones an independent process, of the closed loop some
// of the connections. It compares clocks with each agent, has all begin at one moment, and
// puts together what they measured. Histograms merge bucket by bucket, so that quantiles of
// the whole are those that one generator would have recorded.
//
// # What is promised
//
// There is a result only if every agent gave one. An agent of which nothing is heard for
// 1.75 s is lost: it was killed, it is frozen, or the network is parted. So is one whose load
// does not end when it must. The load fails then, and the other agents stop. An agent that
// hears nothing from its coordinator for 1.75 s stops as well. What an agent may load, and how
// much, its own configuration says, not the coordinator. Both sides show certificates of one
// authority, and must be of one version.
//
// What is too late or too busy at an agent, and which agent's answers differ from those of
// the others, is in the Report.
//
// # When not to use it
//
// The clocks are compared over the network, so starts are as far apart as its delays are
// uneven: see Report.Skew. One generator that suffices is simpler, and its schedule exact.
package fleet

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
)

var (
	// ErrLost is wrapped when an agent was lost, or gave no result.
	ErrLost = errors.New("agent lost")
	// ErrVersion is wrapped when coordinator and agent are of different versions.
	ErrVersion = wire.ErrVersion
	// ErrBusy is wrapped when another coordinator has an agent.
	ErrBusy = wire.ErrBusy
	// ErrNotAllowed is wrapped when an agent's configuration forbids a load.
	ErrNotAllowed = wire.ErrNotAllowed
	// ErrUnshared is wrapped when a load cannot be shared out.
	ErrUnshared = errors.New("load cannot be shared out")
)

// Options say which agents there are. Agents and TLS are required.
type Options struct {
	Agents  []string    // as host:port
	TLS     *tls.Config // as certs.Coordinator makes it
	Version string      // tare's, which must be the agents'
	CA      []byte      // PEM certificates by which agents verify https targets; empty: their system's
}

// Fleet is a coordinator. A nil one makes loads in this process, with load.Run. It is for one
// goroutine at a time.
type Fleet struct {
	o       Options
	base    time.Time // from which its clock counts
	members []*member
	lost    int      // loads in a row that failed
	unfit   []string // of the last load
	keep    func(*Report) error
}

// member is an agent and the connection to it.
type member struct {
	name   string
	link   *wire.Link // nil: not connected
	offset int64      // of the agent's clock, ns: agent's = coordinator's + offset
	rtt    time.Duration
}

// Connect connects to all agents. Close ends the connections.
func Connect(ctx context.Context, o Options) (*Fleet, error) {
	f := &Fleet{o: o, base: time.Now()}
	for _, name := range o.Agents {
		f.members = append(f.members, &member{name: name})
	}
	if len(f.members) == 0 {
		return nil, errors.New("connecting to agents: none is named")
	}
	if err := f.each(func(m *member) error { return f.connect(ctx, m) }); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close parts from the agents, which stop their loads.
func (f *Fleet) Close() {
	if f == nil {
		return
	}
	for _, m := range f.members {
		if m.link != nil {
			m.link.Close()
			m.link = nil
		}
	}
}

// each does something for all members at once. Errors name the agent.
func (f *Fleet) each(do func(*member) error) error {
	errs := make([]error, len(f.members))
	var all sync.WaitGroup
	for i, m := range f.members {
		all.Go(func() {
			if err := do(m); err != nil {
				errs[i] = fmt.Errorf("agent %s: %w", m.name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (f *Fleet) clock() int64 { return int64(time.Since(f.base)) }

// handOver is more than an agent needs to notice that its coordinator is gone, and to give
// requests in flight their second.
const handOver = 3 * time.Second

// connectWithin bounds connecting and its TLS handshake.
const connectWithin = 5 * time.Second

// connect connects to an agent, unless that is done.
func (f *Fleet) connect(ctx context.Context, m *member) error {
	end := time.Now().Add(handOver)
	for m.link == nil {
		err := f.greet(ctx, m)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrBusy) || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wire.Beat / 4):
		}
	}
	return nil
}

// greet connects to an agent and compares versions.
func (f *Fleet) greet(ctx context.Context, m *member) error {
	dialing, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	conn, err := (&tls.Dialer{Config: f.o.TLS}).DialContext(dialing, "tcp", m.name)
	if err != nil {
		return cmp.Or(context.Cause(ctx), fmt.Errorf("connecting: %w", err))
	}
	l := wire.NewLink(conn, wire.MostFrame)
	reply, err := exchange(l, &wire.Message{Kind: wire.KindHello, Protocol: wire.Protocol, Version: f.o.Version}, wire.KindHello)
	if err == nil && (reply.Version != f.o.Version || reply.Protocol != wire.Protocol) {
		err = fmt.Errorf("%w: the agent is tare %s and the coordinator %s", ErrVersion, reply.Version, f.o.Version)
	}
	if err != nil {
		l.Close()
		return fmt.Errorf("greeting: %w", err)
	}
	l.Living.Store(true)
	go l.KeepAlive()
	m.link = l
	return nil
}

// exchange sends a message and returns the answer, which must be of that kind.
func exchange(l *wire.Link, m *wire.Message, want string) (*wire.Message, error) {
	if err := l.Send(m); err != nil {
		return nil, err
	}
	reply, err := l.Receive()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the agent closed the connection")
	}
	if err != nil {
		return nil, err
	}
	if reply.Kind == wire.KindRefuse {
		return nil, wire.Refused(reply)
	}
	if reply.Kind != want {
		return nil, fmt.Errorf("got message %q; want %q", reply.Kind, want)
	}
	return reply, nil
}

// clockPings is how often an agent is asked for its clock. The exchange that took least
// decides, for it waited least.
const clockPings = 16

// compareClocks finds the offset of an agent's clock. It is off by no more than half of rtt.
func (f *Fleet) compareClocks(m *member) error {
	m.rtt = time.Hour
	for range clockPings {
		reply, err := exchange(m.link, &wire.Message{Kind: wire.KindPing, Asked: f.clock()}, wire.KindPong)
		if err != nil {
			return fmt.Errorf("comparing clocks: %w", err)
		}
		back := f.clock()
		if rtt := time.Duration(back - reply.Asked - (reply.Sent - reply.Received)); rtt < m.rtt {
			m.rtt = rtt
			m.offset = (reply.Received - reply.Asked + reply.Sent - back) / 2
		}
	}
	return nil
}

// Load is Run for a runner of trials. A result comes with the error, an empty one, when the
// load can be made again: an agent was lost, for the first or second time in a row.
func (f *Fleet) Load(ctx context.Context, o load.Options) (*load.Result, error) {
	if f == nil {
		return load.Run(ctx, o)
	}
	const mostLost = 3
	f.unfit = nil
	rep, err := f.Run(ctx, o)
	if rep == nil {
		if f.lost++; ctx.Err() != nil || !errors.Is(err, ErrLost) || f.lost >= mostLost {
			return nil, err
		}
		return new(load.Result), err
	}
	f.lost, f.unfit = 0, rep.Unfit
	if f.keep != nil {
		err = errors.Join(err, f.keep(rep))
	}
	return rep.Result, err
}

// Unfit is why the last Load cannot be trusted; nothing if it can.
func (f *Fleet) Unfit() []string {
	if f == nil {
		return nil
	}
	return f.unfit
}

// Keep has each report of Load kept by a function.
func (f *Fleet) Keep(with func(*Report) error) { f.keep = with }

// String names the agents.
func (f *Fleet) String() string { return strings.Join(f.o.Agents, ", ") }

// Names checks agents as they are written on a command line, and adds the port that is
// left out.
func Names(written []string) ([]string, error) {
	seen := map[string]bool{}
	names := make([]string, 0, len(written))
	for _, text := range written {
		name := text
		if _, _, err := net.SplitHostPort(name); err != nil {
			name = net.JoinHostPort(strings.Trim(text, "[]"), wire.DefaultPort)
		}
		host, _, err := net.SplitHostPort(name)
		if err != nil || host == "" {
			return nil, fmt.Errorf("%q is not an agent such as host:%s", text, wire.DefaultPort)
		}
		if seen[name] {
			return nil, fmt.Errorf("agent %s is named twice", name)
		}
		seen[name] = true
		names = append(names, name)
	}
	return names, nil
}
