package arm

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// What a message holds of standard error: so many of the last lines, and so many
// bytes of each.
const (
	shownLines = 10
	shownBytes = 500
)

// pump reads what an arm writes to a pipe until nobody can write to it.
type pump struct {
	r, w *os.File
	done chan struct{}
}

func newPump(to io.Writer) (*pump, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &pump{r: r, w: w, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_, _ = io.Copy(to, r) // ends with the pipe, whose loss costs messages only
	}()
	return p, nil
}

// settle waits a moment for what the arm wrote last. A child of the arm may
// hold the pipe open for longer.
func (p *pump) settle() {
	select {
	case <-p.done:
	case <-time.After(100 * time.Millisecond):
	}
}

func (p *pump) close() {
	p.w.Close()
	p.settle()
	p.r.Close()
	<-p.done
}

// tail keeps the last bytes written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	max int
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.max; over > t.max {
		t.buf = append(t.buf[:0], t.buf[over:]...) // seldom: only when twice as long
	}
	return len(b), nil
}

// quoted returns the last lines for the end of a message; "" if there are none.
func (t *tail) quoted() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.buf[max(0, len(t.buf)-t.max):]
	text := strings.TrimSpace(string(kept))
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-shownLines):]
	for i, line := range lines {
		if len(line) > shownBytes {
			lines[i] = strings.ToValidUTF8(line[:shownBytes], "") + "…"
		}
	}
	return "; it wrote:\n" + strings.Join(lines, "\n")
}
