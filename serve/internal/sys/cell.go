package sys

import (
	"sync/atomic"
	"unsafe"
)

// Cell holds a pointer, map, channel or function, or is empty. It is safe for
// concurrent use. Its zero value is empty.
type Cell struct{ p unsafe.Pointer }

// null is what a cell points to that holds a nil.
var null byte

// Put puts v into the cell, in one store. T is the kind of type that a cell
// holds, and for each cell always the same.
func Put[T any](c *Cell, v T) {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&v))
	if p == nil {
		p = unsafe.Pointer(&null)
	}
	atomic.StorePointer(&c.p, p)
}

// Get returns what is in the cell, and whether anything is.
func Get[T any](c *Cell) (v T, ok bool) {
	p := atomic.LoadPointer(&c.p)
	if p == nil {
		return v, false
	}
	if p != unsafe.Pointer(&null) {
		v = *(*T)(unsafe.Pointer(&p))
	}
	return v, true
}
