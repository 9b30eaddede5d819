package telemetry

import "sync"

// Losses count what did not arrive. The zero value has none. It is safe for concurrent use.
type Losses struct {
	mu  sync.Mutex
	n   int
	why error
}

// Add counts n more, and keeps why. Of what is tried again there is the reason alone, n is 0.
func (l *Losses) Add(n int, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.why = l.n+n, why
}

// Take returns how many there were since it was last asked, and the last reason.
func (l *Losses) Take() (n int, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, why = l.n, l.why
	l.n, l.why = 0, nil
	return n, why
}
