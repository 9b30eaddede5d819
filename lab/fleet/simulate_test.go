package fleet_test

import (
	"crypto/tls"
	"net"
	"time"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// simulate answers coordinators as agents do, one a connection, and makes no load. Each sends
// times a second, and at the end a result of these.
func simulate(listener net.Listener, security *tls.Config, times *hist.Hist) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		s := &simulated{link: wire.NewLink(tls.Server(conn, security), wire.MostFrame), base: time.Now(), times: times}
		go s.listen()
	}
}

type simulated struct {
	link   *wire.Link
	base   time.Time // when its clock was 0
	times  *hist.Hist
	late   time.Duration // by which it begins its loads
	stuck  bool          // it lives, and its loads never end
	length time.Duration
	began  time.Time // when its last load did
}

func (s *simulated) listen() {
	defer s.link.Close()
	go s.link.KeepAlive()
	for {
		m, err := s.link.Receive()
		if err != nil {
			return
		}
		now := int64(time.Since(s.base))
		switch m.Kind {
		case wire.KindHello:
			err = s.link.Send(&wire.Message{Kind: wire.KindHello, Protocol: wire.Protocol, Version: version})
		case wire.KindPing:
			err = s.link.Send(&wire.Message{Kind: wire.KindPong, Asked: m.Asked, Received: now, Sent: now})
		case wire.KindJob:
			s.link.Living.Store(true)
			s.length = m.Job.Duration
			err = s.link.Send(&wire.Message{Kind: wire.KindReady})
		case wire.KindStart:
			go s.load(s.base.Add(time.Duration(m.At)))
		}
		if err != nil {
			return
		}
	}
}

func (s *simulated) load(start time.Time) {
	if s.stuck {
		return
	}
	defer s.link.Living.Store(false)
	time.Sleep(time.Until(start) + s.late)
	s.began = time.Now()
	res := &load.Result{Started: s.began, Elapsed: s.length, Window: s.length, Threads: 1}
	for _, h := range wire.HistsOf(res) {
		*h = hist.New()
	}
	for at := time.Duration(0); at < s.length; at += time.Second {
		time.Sleep(time.Until(s.began.Add(at + time.Second)))
		n := s.times.Count()
		res.Counts.Scheduled += n
		res.Counts.Status[2] += n
		res.Response.Merge(s.times)
		res.Service.Merge(s.times)
		m := &wire.Message{Kind: wire.KindPart, Hists: [][]byte{s.times.Append(nil)}, Part: &wire.Part{
			Elapsed: at + time.Second, Total: s.length, Rate: float64(n), Counts: wire.TallyOf(res.Counts),
			Slices: []load.Slice{{At: at, Answered: n, P50: time.Duration(s.times.Quantile(.5)), P99: time.Duration(s.times.Quantile(.99))}},
		}}
		if s.link.Send(m) != nil {
			return
		}
	}
	_ = s.link.Send(wire.PackResult(res, s.base)) // the coordinator misses it otherwise
}
