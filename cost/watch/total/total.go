// Package total adds up what package watch sees, for systems that ask for it now and then.
package total

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/cost/watch"
)

// Totals add intervals up, within bounds, so that whoever reads them, and however often,
// misses nothing: they only grow. They are not safe for concurrent use.
type Totals struct {
	Owners   int           // of a service that have rows of their own; all others are one. 0: DefaultOwners
	Services int           // likewise; 0: DefaultServices
	Keep     time.Duration // that a service's rows stay after it has gone, and an owner's if others need them; 0: DefaultKeep

	services map[string]*totals
	own      watch.Own
	watched  Watched
}

// What holds unless Totals say otherwise.
const (
	DefaultOwners   = 50
	DefaultServices = 200
	DefaultKeep     = 15 * time.Minute
)

// Rest is the name of the services, and the kind and name of the owners, that have no rows
// of their own.
const Rest = "other"

// Watched is what watching took, since it began.
type Watched struct {
	CPU, Kernel float64 // seconds
	Lost        int     // samples
	Intervals   int
}

// Row is what an owner spent by a cause, since its row began.
type Row struct {
	Kind, Owner, Cause string
	CPU                float64 // seconds
}

// Total is what a service did.
type Total struct {
	Service  string
	Builds   []watch.Build // seen in the last interval in which it ran
	CPU      float64       // seconds
	Requests float64
	Counted  bool // requests were counted, if not always
	// CountedCPU is the CPU of the intervals in which requests were counted.
	CountedCPU float64
	Processes  int
	Rows       []Row // by kind, owner and cause
	Answers    []reply.Bucket
}

type rowKey struct{ kind, owner, cause string }

// totals are those of one service.
type totals struct {
	Total
	rows   map[rowKey]float64
	owners map[string]owner // by name
	last   time.Time

	most int           // owners
	keep time.Duration // as in Totals
}

// owner is one that has rows of its own.
type owner struct {
	kind string
	last time.Time // end of the last interval that it was seen in
}

// Add adds an interval.
func (t *Totals) Add(i *watch.Interval) {
	if t.services == nil {
		t.services = map[string]*totals{}
	}
	end := i.Begun.Add(i.Duration)
	for k := range i.Services {
		s := &i.Services[k]
		t.at(s.Name).add(s, end)
	}
	for name, s := range t.services {
		if s.last.Equal(end) {
			continue
		}
		s.Processes = 0
		if end.Sub(s.last) > cmp.Or(t.Keep, DefaultKeep) {
			delete(t.services, name)
		}
	}
	t.own = i.Own
	t.watched.CPU += i.Own.CPU * i.Duration.Seconds()
	t.watched.Kernel += i.Own.Kernel * i.Duration.Seconds()
	t.watched.Lost += i.Own.Lost
	t.watched.Intervals++
}

// at is the totals of a service, or of the rest.
func (t *Totals) at(name string) *totals {
	if s := t.services[name]; s != nil {
		return s
	}
	if len(t.services) >= cmp.Or(t.Services, DefaultServices) {
		name = Rest
	}
	s := t.services[name]
	if s == nil {
		s = &totals{Total: Total{Service: name}, rows: map[rowKey]float64{}, owners: map[string]owner{},
			most: cmp.Or(t.Owners, DefaultOwners), keep: cmp.Or(t.Keep, DefaultKeep)}
		t.services[name] = s
	}
	return s
}

// add adds what a service did in an interval that ended at a time.
func (s *totals) add(of *watch.Service, end time.Time) {
	if !s.last.Equal(end) { // else the rest has other services in it
		s.Builds, s.Processes, s.last = nil, 0, end
	}
	b := of.Bill
	by := b.Seconds
	if b.Requests > 0 {
		by = b.Requests
		s.Counted = true
		s.Requests += b.Requests
		s.CountedCPU += of.CPU.Seconds()
	}
	s.CPU += of.CPU.Seconds()
	for _, build := range of.Builds {
		s.Builds = append(s.Builds, build.Build)
		s.Processes += len(build.PIDs)
	}
	s.Answers = watch.AddAnswers(s.Answers, of.Answers)
	for k := range b.Items {
		s.addItem(&b.Items[k], by/1e9, b.CPU)
	}
}

// addItem adds an owner. It gets rows of its own once it is a middleware, or spends a
// two-hundredth of the CPU, while there are rows to be had.
func (s *totals) addItem(it *cost.Item, scale, cpu float64) {
	kind, name := it.Kind, it.Owner
	was, known := s.owners[name]
	switch {
	case known:
		kind = s.agree(name, was.kind, kind)
	case (kind == cost.Middleware.String() || it.Self >= cpu/200) && s.makeRoom():
	default:
		kind, name = Rest, Rest
	}
	if name != Rest {
		s.owners[name] = owner{kind, s.last}
	}
	for _, c := range it.Causes {
		s.rows[rowKey{kind, name, c.Cause}] += c.Value * scale
	}
}

// makeRoom reports whether there are rows for one more owner. Where all are taken, the one that was
// not seen for the longest time gives its own up, if that is long enough: every build may name its
// functions anew.
func (s *totals) makeRoom() bool {
	if len(s.owners) < s.most {
		return true
	}
	oldest := ""
	for name, o := range s.owners {
		if oldest == "" || o.last.Before(s.owners[oldest].last) {
			oldest = name
		}
	}
	if s.last.Sub(s.owners[oldest].last) <= s.keep {
		return false
	}
	maps.DeleteFunc(s.rows, func(k rowKey, _ float64) bool { return k.owner == oldest })
	delete(s.owners, oldest)
	return true
}

// agree returns an owner's kind. In an interval that has no stack of what it calls, a
// middleware looks like a handler: once a middleware, it stays one, and what was counted
// of it as a handler is a middleware's, too.
func (s *totals) agree(owner, was, kind string) string {
	if was == kind || kind != cost.Middleware.String() {
		return was
	}
	for k, v := range maps.Clone(s.rows) {
		if k.owner == owner && k.kind == was {
			delete(s.rows, k)
			s.rows[rowKey{kind, owner, k.cause}] += v
		}
	}
	return kind
}

// All returns the totals, by service. They share nothing with what comes later.
func (t *Totals) All() []Total {
	var all []Total
	for _, name := range slices.Sorted(maps.Keys(t.services)) {
		s := t.services[name]
		one := s.Total
		one.Builds, one.Answers = slices.Clone(s.Builds), slices.Clone(s.Answers)
		for k, v := range s.rows {
			one.Rows = append(one.Rows, Row{k.kind, k.owner, k.cause, v})
		}
		slices.SortFunc(one.Rows, func(a, b Row) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Cause, b.Cause))
		})
		all = append(all, one)
	}
	return all
}

// Own is what watching took in the last interval, and since it began.
func (t *Totals) Own() (watch.Own, Watched) { return t.own, t.watched }
