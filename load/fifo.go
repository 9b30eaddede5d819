package load

// fifo is a queue of times. It takes no more than twice the room that what it
// holds needs. The zero value is empty.
type fifo struct {
	items []int64
	head  int // of items, the first not taken
}

func (q *fifo) push(t int64) { q.items = append(q.items, t) }

func (q *fifo) pop() (int64, bool) {
	if q.empty() {
		return 0, false
	}
	t := q.first()
	if q.head++; q.head > len(q.items)/2 {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	return t, true
}

func (q *fifo) empty() bool { return q.head == len(q.items) }

// first is what pop would return next; q is not empty.
func (q *fifo) first() int64 { return q.items[q.head] }

// drain empties the queue and returns what it held.
func (q *fifo) drain() []int64 {
	rest := q.items[q.head:]
	*q = fifo{}
	return rest
}
