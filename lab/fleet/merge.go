package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// windUp is more than a load goes on for after it was ended early: slices of that time all
// belong to the last one.
const windUp = 3 * time.Second

// merger puts parts together as they come.
type merger struct {
	period time.Duration // of a slice
	show   func(load.Snapshot)

	mu     sync.Mutex
	agents []arrived
	open   map[int]*slot // by index; some agent may add to them
	spare  []*slot
	sealed []load.Slice
	past   hist.Hist // response times of the sealed slices
}

// arrived is what came from one agent.
type arrived struct {
	latest wire.Part
	series []load.Slice
	next   int    // the least index that its next slice can have
	passed int    // likewise, by the time that has passed for it
	values uint64 // in the histograms of its slices
}

// slot is a slice of the whole that is not finished.
type slot struct {
	load.Slice
	times hist.Hist
}

func newMerger(o load.Options, agents int) *merger {
	return &merger{period: cmp.Or(o.Slice, time.Second), show: o.Progress, agents: make([]arrived, agents), open: map[int]*slot{}}
}

// add takes a part of agent k. Slices begin before now, which counts as they do.
func (g *merger) add(k int, m *wire.Message, now time.Duration) error {
	p := m.Part
	if p == nil || len(p.Slices) != len(m.Hists) {
		return errors.New("a part lacks slices or their histograms")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	a := &g.agents[k]
	for i, s := range p.Slices {
		if s.At < 0 || s.At > now || s.At%g.period != 0 || int(s.At/g.period) < max(a.next, len(g.sealed)) {
			return fmt.Errorf("a part has a slice at %v, out of order", s.At)
		}
		if err := g.addSlice(a, s, m.Hists[i]); err != nil {
			return fmt.Errorf("the histogram of a part %w", err)
		}
	}
	if !p.Final {
		a.latest = *p
		past := p.Elapsed - windUp
		if p.Total > 0 { // what comes later belongs to the last slice
			past = min(past, p.Total-1)
		}
		a.passed = max(0, int(past/g.period))
	}
	g.seal(g.finished())
	return nil
}

func (g *merger) addSlice(a *arrived, s load.Slice, times []byte) error {
	i := int(s.At / g.period)
	sum, ok := g.open[i]
	if !ok {
		sum = g.empty()
		g.open[i] = sum
	}
	before := sum.times.Count()
	if err := sum.times.MergeAppended(times); err != nil {
		return err
	}
	a.values += sum.times.Count() - before
	a.series, a.next = append(a.series, s), i+1
	sum.Answered += s.Answered
	sum.Failed += s.Failed
	sum.Dropped += s.Dropped
	sum.BytesIn += s.BytesIn
	return nil
}

func (g *merger) empty() *slot {
	if n := len(g.spare); n > 0 {
		s := g.spare[n-1]
		g.spare = g.spare[:n-1]
		return s
	}
	return new(slot)
}

// finished is the least index to which some agent may still add.
func (g *merger) finished() int {
	least := max(g.agents[0].next, g.agents[0].passed)
	for _, a := range g.agents[1:] {
		least = min(least, max(a.next, a.passed))
	}
	return least
}

// seal finishes the slices before the given index.
func (g *merger) seal(before int) {
	for i := len(g.sealed); i < before; i++ {
		sl := load.Slice{}
		if s, ok := g.open[i]; ok {
			sl = s.Slice
			sl.P50, sl.P99 = time.Duration(s.times.Quantile(.5)), time.Duration(s.times.Quantile(.99))
			sl.Max = time.Duration(s.times.Max())
			g.past.Merge(&s.times)
			delete(g.open, i)
			s.times.Reset()
			s.Slice = load.Slice{}
			g.spare = append(g.spare, s)
		}
		sl.At = time.Duration(i) * g.period
		g.sealed = append(g.sealed, sl)
	}
}

// finish seals all and returns the series.
func (g *merger) finish() []load.Slice {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := len(g.sealed)
	for i := range g.open {
		last = max(last, i+1)
	}
	g.seal(last)
	return g.sealed
}

// progress shows what has come so far.
func (g *merger) progress(elapsed time.Duration) {
	if g.show == nil {
		return
	}
	g.mu.Lock()
	s := load.Snapshot{Elapsed: elapsed, Response: g.past.Clone()}
	for _, o := range g.open {
		s.Response.Merge(&o.times)
	}
	var counts wire.Tally
	for _, a := range g.agents {
		for i, n := range a.latest.Counts {
			counts[i] += n
		}
		s.Total = max(s.Total, a.latest.Total)
		s.Rate += a.latest.Rate
		s.Flight += a.latest.Flight
	}
	g.mu.Unlock()
	s.Counts = counts.Counts()
	s.Service = s.Response // service times come with the result; in the closed loop they are the same
	g.show(s)
}
