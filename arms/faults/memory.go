package main

import (
	"bytes"
	"expvar"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
)

const bufferSize = 16 << 10

func newBuffer() any { return &[bufferSize]byte{} }

// fill gives a buffer something to hold, and the answer its length.
func fill(w http.ResponseWriter, b *[bufferSize]byte) {
	n := copy(b[:], "hello\n")
	w.Write(b[:n])
}

// takeAndKeep takes from a pool and puts nothing back.
func takeAndKeep() http.Handler {
	buffers := sync.Pool{New: newBuffer}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fill(w, buffers.Get().(*[bufferSize]byte))
	})
}

// poolEach has a pool for each request, which is always empty.
func poolEach() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		buffers := sync.Pool{New: newBuffer}
		b := buffers.Get().(*[bufferSize]byte)
		defer buffers.Put(b)
		fill(w, b)
	})
}

func takeAndReturn() http.Handler {
	buffers := sync.Pool{New: newBuffer}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b := buffers.Get().(*[bufferSize]byte)
		defer buffers.Put(b)
		fill(w, b)
	})
}

const (
	large   = 8 << 20
	keepMax = 64 << 10
)

// rare is true of the first requests and of one in fifty thousand: few enough that a
// healthy twin on a fast machine does not allocate much.
type rare struct{ n atomic.Int64 }

func (r *rare) yes() bool {
	n := r.n.Add(1)
	return n <= 64 || n%50_000 == 0
}

// render writes an answer into a buffer, a large one now and then.
func render(b *bytes.Buffer, isLarge bool) {
	line := make([]byte, 1024)
	size := 2 * len(line)
	if isLarge {
		size = large
	}
	for b.Len() < size {
		b.Write(line)
	}
}

// keepGrown puts buffers back however large they have become.
func keepGrown() http.Handler {
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	var r rare
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(b)
		b.Reset()
		render(b, r.yes())
		io.WriteString(w, strconv.Itoa(b.Len()))
	})
}

// dropGrown leaves large ones to the collector.
func dropGrown() http.Handler {
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	var r rare
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b := buffers.Get().(*bytes.Buffer)
		b.Reset()
		render(b, r.yes())
		io.WriteString(w, strconv.Itoa(b.Len()))
		if b.Cap() <= keepMax {
			buffers.Put(b)
		}
	})
}

// node is of a tree that the collector has to walk in every cycle.
type node struct{ left, right *node }

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{tree(depth - 1), tree(depth - 1)}
}

// garbage allocates for each request beside a heap that stays.
func garbage(percent int) http.Handler {
	held := tree(20) // 32 MiB
	debug.SetGCPercent(percent)
	var last atomic.Pointer[[2048]byte]
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if held.left == nil {
			panic("the tree has gone")
		}
		last.Store(new([2048]byte))
		io.WriteString(w, "hello\n")
	})
}

// collectOften collects whenever the heap has grown by a twentieth.
func collectOften() http.Handler { return garbage(5) }

func collectRarely() http.Handler { return garbage(400) }

// config is what a handler is set up with.
type config struct {
	Name    string
	Allowed [512]string
}

// captureConfig copies the configuration for each request, since a function that
// outlives the call captures it.
func captureConfig() http.Handler {
	shared := config{Name: "hello\n"}
	var last atomic.Pointer[func() string]
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := shared
		name := func() string {
			c.Allowed[0] = c.Name
			return c.Allowed[0]
		}
		last.Store(&name)
		io.WriteString(w, name())
	})
}

// shareConfig has all requests read the same.
func shareConfig() http.Handler {
	shared := &config{Name: "hello\n"}
	name := func() string { return shared.Name }
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, name())
	})
}

// labelEach counts each order apart, as metrics do that have an identifier for a label.
func labelEach() http.Handler {
	var n atomic.Int64
	return labelled(func() string { return "/orders/" + strconv.FormatInt(n.Add(1), 10) })
}

// labelFew counts all of them by the route's pattern.
func labelFew() http.Handler {
	return labelled(func() string { return "/orders/{id}" })
}

// labelled counts requests by a label and their status.
func labelled(label func() string) http.Handler {
	var mu sync.Mutex
	all := new(expvar.Map)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hello\n")
		by := label()
		mu.Lock()
		defer mu.Unlock()
		statuses, ok := all.Get(by).(*expvar.Map)
		if !ok {
			statuses = new(expvar.Map)
			all.Set(by, statuses)
		}
		statuses.Add("200", 1)
	})
}
