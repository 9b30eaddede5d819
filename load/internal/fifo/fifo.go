// Package fifo queues times.
package fifo

// Queue is a queue of times. It takes no more than twice the room that what it
// holds needs. The zero value is empty.
type Queue struct {
	items []int64
	head  int // of items, the first not taken
}

// Push puts a time behind the others.
func (q *Queue) Push(t int64) { q.items = append(q.items, t) }

// Pop takes the time that was put in first; false: there is none.
func (q *Queue) Pop() (int64, bool) {
	if q.Empty() {
		return 0, false
	}
	t := q.First()
	if q.head++; q.head > len(q.items)/2 {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	return t, true
}

// Empty reports whether nothing is in it.
func (q *Queue) Empty() bool { return q.head == len(q.items) }

// First is what Pop would return next; q is not empty.
func (q *Queue) First() int64 { return q.items[q.head] }

// Drain empties the queue and returns what it held.
func (q *Queue) Drain() []int64 {
	rest := q.items[q.head:]
	*q = Queue{}
	return rest
}
