package fleet_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/fleet/wire"
)

// These tests run by a made-up clock, so that what they say of times holds however busy the
// machine is. What they leave out, processes and sockets, TestLost and TestEightAgents have.

// path is the network between the coordinator and an agent.
type path struct {
	there, back func() time.Duration // that a message takes
	parted      atomic.Bool          // it passes nothing any more, and closes nothing
}

// lay returns both ends of a path.
func (p *path) lay() (coordinators, agents net.Conn) {
	coordinators, near := net.Pipe()
	far, agents := net.Pipe()
	go p.carry(near, far, p.there)
	go p.carry(far, near, p.back)
	return coordinators, agents
}

func (p *path) carry(from, into net.Conn, delay func() time.Duration) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err == nil && !p.parted.Load() {
			time.Sleep(delay())
			_, err = into.Write(b[:n])
		}
		if err != nil {
			if !p.parted.Load() {
				into.Close()
			}
			return
		}
	}
}

// upTo is a delay of at least so long, and less than a millisecond more.
func upTo(least time.Duration) func() time.Duration {
	return func() time.Duration { return least + rand.N(time.Millisecond) }
}

// simulateAt is a simulated agent at the end of a path, whose clock has run for so long.
func simulateAt(conn net.Conn, clock time.Duration) *simulated {
	s := &simulated{link: wire.NewLink(conn, wire.MostFrame), base: time.Now().Add(-clock), times: sampleTimes(100)}
	go s.listen()
	return s
}

// part parts from the agents, and waits until they have noticed.
func part(f *fleet.Fleet) {
	f.Close()
	time.Sleep(2 * wire.Silence)
}

// An agent that is killed or parted is noticed within 2 s, at whatever moment of a second that
// happens, and the load has no result. A frozen one is one from which nothing comes, as parted
// ones are.
func TestNoticed(t *testing.T) {
	const most = 2 * time.Second
	for name, lose := range map[string]func(*path, net.Conn){
		"killed": func(_ *path, agent net.Conn) { agent.Close() },
		"parted": func(p *path, _ net.Conn) { p.parted.Store(true) },
	} {
		for after := 3 * time.Second; after < 4*time.Second; after += 100 * time.Millisecond {
			t.Run(fmt.Sprintf("%s after %v", name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &path{there: upTo(0), back: upTo(0)}
					mine, its := p.lay()
					other, sound := (&path{there: upTo(0), back: upTo(0)}).lay()
					simulateAt(its, time.Hour)
					simulateAt(sound, time.Minute)
					f := fleet.Over(other, mine)
					defer part(f)
					lost := make(chan time.Time, 1)
					time.AfterFunc(after, func() {
						lost <- time.Now()
						lose(p, its)
					})
					rep, err := f.Run(t.Context(), constant("http://127.0.0.1:1/", 100, time.Hour))
					if rep != nil || !errors.Is(err, fleet.ErrLost) || !strings.Contains(err.Error(), "agent lost: 1,") {
						t.Errorf("got %+v, %v; want no result, and that agent 1 was lost", rep, err)
					}
					if took := time.Since(<-lost); took > most {
						t.Errorf("noticed after %v, want at most %v", took, most)
					}
				})
			})
		}
	}
}

// An agent that gives signs of life for ever and no result is lost as well, once its load has had
// all its time, and that of the last requests.
func TestStuck(t *testing.T) {
	const length, patience, more = 3 * time.Second, 10 * time.Second, 6 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var conns []net.Conn
		for k := range 2 {
			mine, its := (&path{there: upTo(0), back: upTo(0)}).lay()
			conns = append(conns, mine)
			simulateAt(its, time.Minute).stuck = k == 1
		}
		f := fleet.Over(conns...)
		defer part(f)
		begun := time.Now()
		rep, err := f.Run(t.Context(), constant("http://127.0.0.1:1/", 100, length))
		if rep != nil || !errors.Is(err, fleet.ErrLost) || !strings.Contains(err.Error(), "agent lost: 1: no result") {
			t.Errorf("got %+v, %v; want no result, and that agent 1 was lost", rep, err)
		}
		if took := time.Since(begun); took < length+patience || took > length+patience+more {
			t.Errorf("given up after %v, want %v to %v", took, length+patience, length+patience+more)
		}
	})
}

// Eight agents, whose clocks are hours apart and whose paths are slower in one direction, begin
// within 10 ms of each other. When each began is reported as right as it says, by the agents'
// own clocks; one that was late makes the load unfit.
func TestSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []net.Conn
		var agents []*simulated
		for k := range 8 {
			p := &path{there: upTo(100 * time.Microsecond), back: upTo(time.Duration(k) * 700 * time.Microsecond)}
			mine, its := p.lay()
			conns = append(conns, mine)
			agents = append(agents, simulateAt(its, time.Duration(k*k)*time.Hour))
		}
		f := fleet.Over(conns...)
		defer part(f)
		run := func() (rep *fleet.Report, skew time.Duration) {
			rep, err := f.Run(t.Context(), constant("http://127.0.0.1:1/", 800, 2*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			first, last := agents[0].began, agents[0].began
			for k, a := range rep.Agents {
				began, off := agents[k].began.Sub(agents[0].began), (a.RTT+rep.Agents[0].RTT)/2
				if told := a.Start - rep.Agents[0].Start; (told - began).Abs() > off {
					t.Errorf("agent %d began %v after the first, and %v is reported: want it right to %v", k, began, told, off)
				}
				if agents[k].began.Before(first) {
					first = agents[k].began
				}
				if agents[k].began.After(last) {
					last = agents[k].began
				}
			}
			return rep, last.Sub(first)
		}
		if rep, skew := run(); skew > 10*time.Millisecond || rep.Skew > 10*time.Millisecond || len(rep.Unfit) > 0 {
			t.Errorf("agents began within %v, and %v is reported, unfit %q; want at most 10ms", skew, rep.Skew, rep.Unfit)
		}
		agents[3].late, agents[6].late = 30*time.Millisecond, 60*time.Millisecond
		rep, skew := run()
		if (rep.Skew-skew).Abs() > 10*time.Millisecond || rep.Skew < 50*time.Millisecond {
			t.Errorf("agents began within %v, and %v is reported; want that, and about 60ms", skew, rep.Skew)
		}
		if text := strings.Join(rep.Unfit, "; "); len(rep.Unfit) != 1 || !strings.Contains(text, "agent 6 began") {
			t.Errorf("unfit %q, want agent 6 alone", text)
		}
	})
}
