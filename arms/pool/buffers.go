package main

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
)

const names = "new, pooled, by-value, unreturned or hoarding"

// first is the capacity of a buffer made for a pool: enough for most answers.
const first = 4 << 10

// most is the capacity of the largest buffer that goes back to a pool. What a
// rare large answer needed would otherwise be held for all the small ones.
const most = 128 << 10

func newService(buffers string) (*service, error) {
	n := new(counts)
	s := &service{counts: n}
	switch buffers {
	case "new":
		s.answer = answerNew
	case "pooled":
		p := pooled{counts: n}
		p.pool.New = p.make
		s.answer = p.answer
	case "by-value":
		p := byValue{counts: n}
		p.pool.New = p.make
		s.answer = p.answer
	case "unreturned":
		p := unreturned{counts: n}
		p.pool.New = p.make
		s.answer = p.answer
	case "hoarding":
		p := hoarding{counts: n}
		p.pool.New = p.make
		s.answer = p.answer
	default:
		return nil, fmt.Errorf("buffers %q: want %s", buffers, names)
	}
	return s, nil
}

// counts are what a pool was asked for.
type counts struct{ takes, misses, returns atomic.Int64 }

func (c *counts) metrics() map[string]float64 {
	return map[string]float64{
		"pool/takes": float64(c.takes.Load()), "pool/misses": float64(c.misses.Load()), "pool/returns": float64(c.returns.Load()),
	}
}

// answerNew has a zero buffer grow for each request, as the published misuse does
// beside a pool that it never takes one from.
func answerNew(w http.ResponseWriter, items int) {
	b := bytes.Buffer{}
	encode(&b, items)
	send(w, b.Bytes())
}

// pooled takes a buffer and gives it back unless it has grown too large to keep.
type pooled struct {
	*counts
	pool sync.Pool
}

func (p *pooled) make() any {
	p.misses.Add(1)
	return bytes.NewBuffer(make([]byte, 0, first))
}

func (p *pooled) answer(w http.ResponseWriter, items int) {
	p.takes.Add(1)
	b := p.pool.Get().(*bytes.Buffer)
	encode(b, items)
	send(w, b.Bytes())
	if b.Cap() <= most {
		b.Reset()
		p.returns.Add(1)
		p.pool.Put(b)
	}
}

// byValue gives back slices, not pointers to them: each return allocates the
// slice's header, since an interface holds a pointer.
type byValue struct {
	*counts
	pool sync.Pool
}

func (p *byValue) make() any {
	p.misses.Add(1)
	return make([]byte, 0, first)
}

func (p *byValue) answer(w http.ResponseWriter, items int) {
	p.takes.Add(1)
	b := bytes.NewBuffer(p.pool.Get().([]byte)[:0])
	encode(b, items)
	send(w, b.Bytes())
	if b.Cap() <= most {
		p.returns.Add(1)
		//lint:ignore SA6002 this is the mistake that the arm is there to show
		p.pool.Put(b.Bytes())
	}
}

// unreturned takes and never gives back, as code does that returns early on one
// path and was written once: every take makes a new buffer.
type unreturned struct {
	*counts
	pool sync.Pool
}

func (p *unreturned) make() any {
	p.misses.Add(1)
	return bytes.NewBuffer(make([]byte, 0, first))
}

func (p *unreturned) answer(w http.ResponseWriter, items int) {
	p.takes.Add(1)
	b := p.pool.Get().(*bytes.Buffer)
	encode(b, items)
	send(w, b.Bytes())
}

// hoarding gives every buffer back, however large it has grown: after a while
// the pool holds large ones only.
type hoarding struct {
	*counts
	pool sync.Pool
}

func (p *hoarding) make() any {
	p.misses.Add(1)
	return bytes.NewBuffer(make([]byte, 0, first))
}

func (p *hoarding) answer(w http.ResponseWriter, items int) {
	p.takes.Add(1)
	b := p.pool.Get().(*bytes.Buffer)
	encode(b, items)
	send(w, b.Bytes())
	b.Reset()
	p.returns.Add(1)
	p.pool.Put(b)
}
