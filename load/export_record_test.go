package load

import "time"

// Moments are when a request should have begun, began, had its answer's first
// byte, had it whole, and when that was read, if later.
type Moments struct{ Intended, Start, FirstByte, End, Read time.Duration }

func (m *Moments) outcome() outcome {
	return outcome{
		intended: int64(m.Intended), start: int64(m.Start), firstByte: int64(m.FirstByte), end: int64(m.End),
		status: 200, verified: true, reused: true, bytesIn: 200, bytesOut: 100,
	}
}

// RecordRequests returns what records one answered request each time, one
// after the other, 1 to 65 µs long. If parted, its answer came in parts.
func RecordRequests(parted bool) func() {
	r := newRecorded(false)
	o := (&Moments{}).outcome()
	return func() {
		o.intended = o.end
		o.start, o.end = o.intended, o.intended+1000+o.end&0xffff
		o.firstByte = o.end
		if parted {
			o.firstByte = o.start + (o.end-o.start)/2
		}
		r.Lock()
		r.scheduled(o.intended, o.intended)
		r.answered(&o, o.end)
		r.Unlock()
	}
}

// Recorded is what is reported of requests while an open loop runs and when it
// has ended.
func Recorded(all ...Moments) (*Snapshot, *Result) {
	r := newRecorded(true)
	for _, m := range all {
		o := m.outcome()
		r.scheduled(o.intended, o.intended)
		r.answered(&o, max(o.end, int64(m.Read)))
		r.plan.spent.Store(o.intended) // the last to begin, if no other does
	}
	var s Snapshot
	c := &conductor{plan: r.plan}
	c.fillCounts(&s, int64(time.Second))
	return &s, c.result(nil)
}

// RecordedBy is what is reported of so many workers in an open loop, each of which
// had these requests answered and dropped one when each of them ended.
func RecordedBy(workers int, all ...Moments) *Result {
	r := newRecorded(true)
	p := r.plan
	for k := range workers {
		if k > 0 {
			r = p.recorder()
		}
		for _, m := range all {
			o := m.outcome()
			r.scheduled(o.intended, o.intended)
			r.answered(&o, o.end)
			r.scheduled(o.end, o.end)
			r.dropped(o.end, o.end)
			p.spent.Store(o.end)
		}
	}
	return (&conductor{plan: p}).result(nil)
}

// RecordedFull is what is reported where no request may be in flight, of requests
// that were due so long before they were looked at.
func RecordedFull(late ...time.Duration) *Result {
	r := newRecorded(true)
	r.plan.maxFlight = 0
	for i, d := range late {
		r.scheduled(int64(i), int64(i)+int64(d))
		r.plan.spent.Store(int64(i))
	}
	return (&conductor{plan: r.plan}).result(nil)
}

func newRecorded(open bool) *recorder {
	p := &plan{opts: &Options{Slice: defaultSlice}, maxFlight: never, series: newSeries(defaultSlice)}
	p.start(0)
	p.open = open
	return p.recorder()
}

// Judged adds the caveats to a result of a run by o.
func Judged(res *Result, o Options) *Result {
	c := &conductor{plan: &plan{opts: &o, script: &script{}}}
	c.judge(res)
	return res
}
