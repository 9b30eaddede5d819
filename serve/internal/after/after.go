// Package after keeps functions that are to be called once something has ended.
package after

// List is such functions. The zero value has none. It is not safe for concurrent use.
type List struct{ first *Entry }

// Entry is a function that is, or was, in a list.
type Entry struct {
	f          func()
	prev, next *Entry
	list       *List // nil: it is in none any more
}

// Add puts a function into the list.
func (l *List) Add(f func()) *Entry {
	e := &Entry{f: f, next: l.first, list: l}
	if e.next != nil {
		e.next.prev = e
	}
	l.first = e
	return e
}

// Remove takes e out of its list, and reports whether it was in it yet.
func (e *Entry) Remove() bool {
	l := e.list
	if l == nil {
		return false
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.list = nil
	return true
}

// Take empties the list and returns its first entry; nil: there was none.
func (l *List) Take() *Entry {
	for e := l.first; e != nil; e = e.next {
		e.list = nil
	}
	first := l.first
	l.first = nil
	return first
}

// Call calls the function of e, and of those that stood behind it when they were taken.
func (e *Entry) Call() {
	for ; e != nil; e = e.next {
		e.f()
	}
}
