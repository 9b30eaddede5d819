//go:build unix

package serve_test

import (
	"log"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve"
)

// starved is a listener that lacks descriptors for a while.
type starved struct {
	net.Listener
	until time.Time
	asked []time.Time
}

func (l *starved) Accept() (net.Conn, error) {
	l.asked = append(l.asked, time.Now())
	if time.Now().Before(l.until) {
		return nil, syscall.EMFILE
	}
	return nil, net.ErrClosed
}

func (l *starved) Close() error   { return nil }
func (l *starved) Addr() net.Addr { return &net.TCPAddr{} }

// TestBackOff holds Serve to look for descriptors at least each 100 ms, so that
// it serves within 250 ms of there being some, and to say so once a second.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lack = 10 * time.Second
		var said record
		l := &starved{until: time.Now().Add(lack)}
		s := &serve.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(&said, "", 0)}
		if err := s.Serve(l); err != net.ErrClosed {
			t.Fatalf("Serve returned %v, want the listener's %v", err, net.ErrClosed)
		}
		for i := range l.asked[1:] {
			if pause := l.asked[i+1].Sub(l.asked[i]); pause > 100*time.Millisecond || pause <= 0 {
				t.Errorf("pause %d took %v, want more than none and at most 100ms", i, pause)
			}
		}
		if n := strings.Count(said.text(), "http: Accept error: "); n < 9 || n > 11 { // as net/http says
			t.Errorf("%d lines in the log of %v, want one a second:\n%s", n, lack, said.text())
		}
	})
}
