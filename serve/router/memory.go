package router

import (
	"net/http"
	"sync/atomic"

	"github.com/tarehq/tare/serve/internal/sys"
)

// memory is where values lie that a request has no room for.
type memory struct {
	stripes [16]stripe
}

// stripe is a cache line of its own.
type stripe struct {
	chunk atomic.Pointer[chunk]
	_     [56]byte
}

// chunk holds values of several requests, half a kilobyte of them.
type chunk struct {
	used   atomic.Int64
	values [31]string
}

// keep returns a copy of the values that nobody else will change.
func (m *memory) keep(r *http.Request, vs []string) []string {
	s := &m.stripes[sys.Neighbourhood(r)%uintptr(len(m.stripes))]
	for len(vs) <= len(chunk{}.values) {
		c := s.chunk.Load()
		if c != nil {
			if end := int(c.used.Add(int64(len(vs)))); end <= len(c.values) {
				kept := c.values[end-len(vs) : end : end]
				for i := range kept {
					kept[i] = vs[i]
				}
				return kept
			}
		}
		s.chunk.CompareAndSwap(c, new(chunk))
	}
	kept := make([]string, len(vs)) // slices.Clone would make the compiler move vs to the heap
	copy(kept, vs)
	return kept
}
