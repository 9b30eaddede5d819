package breaker

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// upload is a request's body that notes how long it was waited for. That is its sender's time, and
// says nothing of what the breaker guards.
type upload struct {
	io.ReadCloser
	mu     sync.Mutex
	waited time.Duration
	since  time.Time // when the read that waits has begun; zero: none does
}

// watch returns a body for the request's that notes it; nil: it has none.
func watch(r *http.Request) *upload {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &upload{ReadCloser: r.Body}
}

func (u *upload) Read(p []byte) (int, error) {
	u.mark(time.Now())
	defer u.mark(time.Time{})
	return u.ReadCloser.Read(p)
}

// mark notes that a read begins then, or with a zero time that one has ended.
func (u *upload) mark(begun time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.since.IsZero() {
		u.waited += time.Since(u.since)
	}
	u.since = begun
}

// total returns how long the body was waited for by now.
func (u *upload) total() time.Duration {
	if u == nil {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since.IsZero() {
		return u.waited
	}
	return u.waited + time.Since(u.since)
}
