package load

import (
	"sync"
	"time"

	"github.com/tarehq/tare/stats/hist"
)

// slicePart is what one worker saw end in one slice.
type slicePart struct {
	answered, failed, dropped, bytesIn uint64
	response                           *hist.Hist
}

func newSlicePart() *slicePart { return &slicePart{response: hist.New()} }

func (p *slicePart) add(q *slicePart) {
	p.answered += q.answered
	p.failed += q.failed
	p.dropped += q.dropped
	p.bytesIn += q.bytesIn
	p.response.Merge(q.response)
}

func (p *slicePart) reset() {
	h := p.response
	h.Reset()
	*p = slicePart{response: h}
}

// series puts the workers' slices together. Response times are recorded once,
// in the slice; the whole run's are the slices' sum.
type series struct {
	mu       sync.Mutex
	period   time.Duration
	sealed   []Slice
	open     map[int]*slicePart // by index; handed over and not sealed
	spare    []*slicePart
	response *hist.Hist // of all sealed slices
}

func newSeries(period time.Duration) *series {
	return &series{period: period, open: map[int]*slicePart{}, response: hist.New()}
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
			if p.answered > 0 {
				sl.P50 = time.Duration(p.response.Quantile(0.5))
				sl.P99 = time.Duration(p.response.Quantile(0.99))
				sl.Max = time.Duration(p.response.Max())
			}
			s.response.Merge(p.response)
			delete(s.open, i)
			p.reset()
			s.spare = append(s.spare, p)
		}
		s.sealed = append(s.sealed, sl)
	}
}

// responses adds all response times handed over so far to h.
func (s *series) responses(h *hist.Hist) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Merge(s.response)
	for _, p := range s.open {
		h.Merge(p.response)
	}
}
