package sys_test

import (
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/tarehq/tare/serve/internal/sys"
)

func TestCell(t *testing.T) {
	try(t, func(a, b *int) bool { return a == b }, new(int), nil, new(int))
	try(t, func(a, b chan int) bool { return a == b }, make(chan int), nil)
	try(t, func(a, b map[string]int) bool { return len(a) == len(b) && a["a"] == b["a"] }, map[string]int{"a": 1}, nil, map[string]int{"a": 2})
	one := 1
	try(t, func(a, b func() int) bool { return a == nil && b == nil || a() == b() }, func() int { return one })
}

// try puts the values into one cell by turns, and one of them at once.
func try[T any](t *testing.T, same func(a, b T) bool, values ...T) {
	t.Helper()
	var c sys.Cell
	if v, ok := sys.Get[T](&c); ok {
		t.Errorf("%T: got %v of an empty cell", v, v)
	}
	for _, v := range values {
		sys.Put(&c, v)
		runtime.GC()
		if got, ok := sys.Get[T](&c); !ok || !same(got, v) {
			t.Errorf("%T: got %v, %t, want %v", v, got, ok, v)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				sys.Put(&c, values[0])
				if got, ok := sys.Get[T](&c); !ok || !same(got, values[0]) && !same(got, values[len(values)-1]) {
					t.Errorf("%T: got %v, %t at once", got, got, ok)
				}
			}
		})
	}
	all.Wait()
}

// TestCellHolds holds that what is in a cell stays alive for it, and not longer.
func TestCellHolds(t *testing.T) {
	var c sys.Cell
	w := func() weak.Pointer[[64]byte] {
		v := new([64]byte)
		v[7] = 7
		sys.Put(&c, v)
		return weak.Make(v)
	}()
	runtime.GC()
	if v, ok := sys.Get[*[64]byte](&c); !ok || v[7] != 7 || w.Value() != v {
		t.Errorf("got %v, %t, want what was put", v, ok)
	}
	c = sys.Cell{}
	runtime.GC()
	if w.Value() != nil {
		t.Error("an empty cell keeps what was in it alive")
	}
}
