package tunnel

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// reader reads what knows no deadlines by deadlines that can be set anew, as net.Conn has them.
// A goroutine reads beside, as far as somebody has asked for it: a Read that gives up loses
// nothing, and a later one goes on.
//
// Note: a request's body by HTTP/2 has a deadline, but one that has passed ends it for good.
type reader struct {
	from  io.Reader
	ended <-chan struct{} // closed once nobody reads any more
	until deadline

	one   sync.Mutex // held to read
	begun bool       // there is the goroutine
	asked bool       // it is reading a piece
	want  chan struct{}
	came  chan piece // likewise has room for one, so that the goroutine waits for nobody
	rest  []byte     // of a piece
	err   error      // behind it
}

// piece is what was read at once.
type piece struct {
	data []byte
	err  error
}

// mostPiece is how much is read ahead, in bytes.
const mostPiece = 4 << 10

func newReader(from io.Reader, ended <-chan struct{}) *reader {
	return &reader{from: from, ended: ended, want: make(chan struct{}, 1), came: make(chan piece, 1)}
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	r.one.Lock()
	defer r.one.Unlock()
	past := r.until.past()
	select {
	case <-r.ended:
		return 0, net.ErrClosed
	case <-past:
		return 0, os.ErrDeadlineExceeded
	default:
	}
	if len(p) > 0 && len(r.rest) == 0 && r.err == nil {
		r.ask()
		select {
		case got := <-r.came:
			r.rest, r.err, r.asked = got.data, got.err, false
		case <-past:
			return 0, os.ErrDeadlineExceeded
		case <-r.ended:
			return 0, net.ErrClosed
		}
	}
	if n := copy(p, r.rest); n > 0 || len(p) == 0 {
		r.rest = r.rest[n:]
		return n, nil
	}
	return 0, r.err
}

// ask has the goroutine read a piece, unless it does.
func (r *reader) ask() {
	if !r.begun {
		r.begun = true
		go r.run()
	}
	if !r.asked {
		r.asked = true
		r.want <- struct{}{}
	}
}

// run reads a piece whenever one is wanted. Nobody needs the one before then.
func (r *reader) run() {
	buf := make([]byte, mostPiece)
	for {
		select {
		case <-r.want:
		case <-r.ended:
			return
		}
		n, err := r.from.Read(buf)
		r.came <- piece{buf[:n], err}
		if err != nil {
			return
		}
	}
}

// deadline is a time that can be set anew, also once it has passed. The zero value is none.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer   // nil: it has passed, or there is none
	over  chan struct{} // closed once it has passed; nil until somebody asks for it
}

// past returns a channel that is closed once the deadline has passed, also if it is moved before.
func (d *deadline) past() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over == nil {
		d.over = make(chan struct{})
	}
	return d.over
}

// set moves the deadline. The zero time is none.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.over == nil {
		d.over = make(chan struct{})
	}
	select {
	case <-d.over:
		d.over = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		close(d.over)
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer { // else it was moved at the last moment
			d.timer = nil
			close(d.over)
		}
	})
	d.timer = timer
}
