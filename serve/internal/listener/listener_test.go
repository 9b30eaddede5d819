package listener_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/internal/listener"
)

// silent accepts nothing until it is closed, and knows no deadlines.
type silent struct {
	net.Listener
	closed chan struct{}
}

func (s silent) Accept() (net.Conn, error) {
	<-s.closed
	return nil, net.ErrClosed
}

func (s silent) Close() error {
	close(s.closed)
	return nil
}

// TestDeaf has an Accept that goes on. It is taken for deaf after several looks, and not
// after however long a time in which the whole process stood still.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := silent{closed: make(chan struct{})}
		l := listener.New(s, s)
		l.StopsSoon()
		time.Sleep(time.Hour)
		if l.Deaf() {
			t.Error("deaf without an Accept")
		}
		go l.Accept()
		synctest.Wait()
		looks := 1
		for ; !l.Deaf() && looks < 100; looks++ {
			time.Sleep(time.Minute)
		}
		if looks != 5 {
			t.Errorf("deaf at look %d, want 5", looks)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
