package fleet

import (
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
)

// FindUnlike is findUnlike.
func FindUnlike(series [][]load.Slice) []string { return findUnlike(series) }

// SignTest is signTest.
func SignTest(most, n int) float64 { return signTest(most, n) }

// ShareOut is share k of n of a load, as the agent gets it.
func ShareOut(o load.Options, k, n int, ca []byte) (load.Options, error) {
	j, err := shareOut(o, k, n, ca)
	if err != nil {
		return load.Options{}, err
	}
	text, err := json.Marshal(&wire.Message{Kind: wire.KindJob, Job: j})
	if err != nil {
		return load.Options{}, err
	}
	m := new(wire.Message)
	if err := json.Unmarshal(text, m); err != nil {
		return load.Options{}, err
	}
	return m.Job.Unpack()
}

// MergeResults adds up results of agents.
func MergeResults(all ...*load.Result) *load.Result {
	var shares []Share
	for _, r := range all {
		shares = append(shares, Share{Result: r})
	}
	return mergeResults(shares)
}

// HangUp closes a fleet's connections, as the end of its process does.
func HangUp(f *Fleet) { f.hangUp() }

// Came is a part that came from an agent at a time of the load.
type Came struct {
	Agent int
	At    time.Duration
	Part  wire.Part
	Hists [][]byte
}

// Merge puts parts of so many agents together and returns the series.
func Merge(agents int, o load.Options, came []Came) ([]load.Slice, error) {
	g := newMerger(o, agents)
	for _, c := range came {
		if err := g.add(c.Agent, &wire.Message{Part: &c.Part, Hists: c.Hists}, c.At); err != nil {
			return nil, err
		}
	}
	return g.finish(), nil
}

// Over is a fleet of agents that have greeted, at the other ends of connections. They are named
// by their numbers.
func Over(conns ...net.Conn) *Fleet {
	f := &Fleet{base: time.Now()}
	for k, conn := range conns {
		l := wire.NewLink(conn, wire.MostFrame)
		l.Living.Store(true)
		go l.KeepAlive()
		f.members = append(f.members, &member{name: fmt.Sprint(k), link: l})
	}
	return f
}
