package load

// RecordRequests returns what records one answered request each time.
func RecordRequests() func() {
	p := &plan{opts: &Options{Slice: defaultSlice}, maxFlight: never, series: newSeries(defaultSlice)}
	p.start(0)
	r := p.recorder()
	o := outcome{status: 200, verified: true, reused: true, bytesIn: 200, bytesOut: 100}
	return func() {
		// As if the requests came one after the other, 1 to 65 µs long.
		o.intended = o.end
		o.start, o.end = o.intended, o.intended+1000+o.end&0xffff
		o.firstByte = o.end
		r.Lock()
		r.scheduled(o.intended, o.intended)
		r.answered(&o)
		r.Unlock()
	}
}
