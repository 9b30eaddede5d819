package main

import (
	"runtime/metrics"
	"sync"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// read are the runtime's metrics that a request is labelled with.
var read = [...]string{
	"/sched/latencies:seconds",
	"/sched/goroutines:goroutines",
	"/gc/heap/allocs:bytes",
	"/gc/cycles/total:gc-cycles",
}

// reading is what they are at one time.
type reading [len(read)]metrics.Sample

func newReading() *reading {
	r := new(reading)
	for i, name := range read {
		r[i].Name = name
	}
	return r
}

// pair is the readings before and after.
type pair struct{ before, after *reading }

// attributes are what happened between the two readings.
func (p *pair) attributes(middleware string) []attribute.KeyValue {
	delays, longest := 0, 0.0
	before, after := p.before[0].Value.Float64Histogram(), p.after[0].Value.Float64Histogram()
	for i := range after.Counts {
		if n := after.Counts[i] - before.Counts[i]; n > 0 {
			delays, longest = delays+int(n), after.Buckets[i]
		}
	}
	return []attribute.KeyValue{
		attribute.String("middleware", middleware),
		attribute.Int("runtime.sched.delays", delays),
		attribute.Float64("runtime.sched.longest_delay", longest), // at least, in seconds
		attribute.Int64("runtime.goroutines", int64(p.after[1].Value.Uint64())),
		attribute.Int64("runtime.allocated", p.allocated()),
		attribute.Int64("runtime.gc.cycles", int64(p.after[3].Value.Uint64()-p.before[3].Value.Uint64())),
	}
}

// allocated is in bytes.
func (p *pair) allocated() int64 {
	return int64(p.after[2].Value.Uint64() - p.before[2].Value.Uint64())
}

// readBeside reads the runtime's metrics before and after what is behind it, and has the
// difference, with the middleware's name, on the span of the request's trace.
func readBeside(middleware string) gin.HandlerFunc {
	pairs := sync.Pool{New: func() any { return &pair{newReading(), newReading()} }}
	return func(c *gin.Context) {
		p := pairs.Get().(*pair)
		metrics.Read(p.before[:])
		c.Next()
		metrics.Read(p.after[:])
		trace.SpanFromContext(c.Request.Context()).SetAttributes(p.attributes(middleware)...)
		pairs.Put(p)
	}
}

// What a request's reading counts.
const (
	ofRequest = "its request"
	ofProcess = "the whole process"
)

// readingCounts tries what a reading around a wait has, while another goroutine allocates.
func readingCounts() string {
	p := pair{newReading(), newReading()}
	metrics.Read(p.before[:])
	metrics.Read(p.after[:]) // both have memory now
	const elsewhere = 8 << 20
	begin, made := make(chan bool), make(chan []byte)
	go func() {
		<-begin
		made <- make([]byte, elsewhere)
	}()
	metrics.Read(p.before[:])
	close(begin)
	other := <-made
	metrics.Read(p.after[:])
	if p.allocated() >= int64(len(other)) {
		return ofProcess
	}
	return ofRequest
}
