package load

import (
	"sync"
	"time"

	"github.com/tarehq/tare/stats/hist"
)

// times are answers' response times.
type times struct {
	// alike are those of answers that began when intended and came whole at
	// once, as small ones do in a closed loop: their service time and their time
	// to the first byte are the same.
	//
	// Note: the plain way is to record all three. BenchmarkRecord shows that one
	// record takes less than half the time.
	alike  *hist.Hist
	others *hist.Hist
}

func newTimes() times { return times{alike: hist.New(), others: hist.New()} }

func (t times) add(u times) {
	t.alike.Merge(u.alike)
	t.others.Merge(u.others)
}

// addTo adds the response times, and those service times that are alike.
func (t times) addTo(response, service *hist.Hist) {
	response.Merge(t.alike)
	response.Merge(t.others)
	service.Merge(t.alike)
}

// slicePart is what one worker saw end in one slice.
type slicePart struct {
	answered, failed, dropped, bytesIn uint64
	times
}

func newSlicePart() *slicePart { return &slicePart{times: newTimes()} }

func (p *slicePart) add(q *slicePart) {
	p.answered += q.answered
	p.failed += q.failed
	p.dropped += q.dropped
	p.bytesIn += q.bytesIn
	p.times.add(q.times)
}

func (p *slicePart) reset() {
	p.alike.Reset()
	p.others.Reset()
	*p = slicePart{times: p.times}
}

// series puts the workers' slices together. Response times are recorded once,
// in the slice; the whole run's are the slices' sum.
type series struct {
	mu     sync.Mutex
	period time.Duration
	sealed []Slice
	open   map[int]*slicePart // by index; handed over and not sealed
	spare  []*slicePart
	past   times // of all sealed slices
	tell   func(Slice, *hist.Hist)
}

func newSeries(period time.Duration) *series {
	return &series{period: period, open: map[int]*slicePart{}, past: newTimes()}
}

// exchange takes a worker's part of slice i and gives it an empty one.
func (s *series) exchange(i int, part *slicePart) *slicePart {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, ok := s.open[i]
	if !ok {
		s.open[i] = part
		return s.empty()
	}
	sum.add(part)
	part.reset()
	return part
}

func (s *series) empty() *slicePart {
	if n := len(s.spare); n > 0 {
		p := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return p
	}
	return newSlicePart()
}

// seal finishes the slices before the given index, of which every worker has
// handed over its part.
func (s *series) seal(before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.sealed); i < before; i++ {
		sl := Slice{At: time.Duration(i) * s.period}
		if p, ok := s.open[i]; ok {
			sl.Answered, sl.Failed, sl.Dropped, sl.BytesIn = p.answered, p.failed, p.dropped, p.bytesIn
			s.past.add(p.times)
			all := p.alike
			all.Merge(p.others)
			sl.P50, sl.P99 = time.Duration(all.Quantile(0.5)), time.Duration(all.Quantile(0.99))
			sl.Max = time.Duration(all.Max())
			if s.tell != nil {
				s.tell(sl, all)
			}
			delete(s.open, i)
			p.reset()
			s.spare = append(s.spare, p)
		}
		s.sealed = append(s.sealed, sl)
	}
}

// last is the last slice that a worker handed over a part of with anything in it,
// which may lie behind the last answer: requests may fail after it.
func (s *series) last() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := -1
	for i, p := range s.open {
		if p.answered+p.failed+p.dropped > 0 {
			last = max(last, i)
		}
	}
	return last
}

// addTo adds the times handed over so far.
func (s *series) addTo(response, service *hist.Hist) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.addTo(response, service)
	for _, p := range s.open {
		p.addTo(response, service)
	}
}
