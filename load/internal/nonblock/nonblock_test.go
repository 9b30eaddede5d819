package nonblock_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/tarehq/tare/load/internal/nonblock"
)

// script is a socket that acts by a list: it reads or takes so many bytes, or has an error.
type script struct {
	reads []any
	sends []any
	sent  strings.Builder
}

func (s *script) Recv(p []byte) (int, syscall.Errno) {
	if len(s.reads) == 0 {
		return 0, syscall.EAGAIN
	}
	act := s.reads[0]
	s.reads = s.reads[1:]
	if e, ok := act.(syscall.Errno); ok {
		return 0, e
	}
	return copy(p, act.(string)), 0
}

func (s *script) Send(p []byte) (int, syscall.Errno) {
	if len(s.sends) == 0 {
		s.sent.Write(p)
		return len(p), 0
	}
	act := s.sends[0]
	s.sends = s.sends[1:]
	if e, ok := act.(syscall.Errno); ok {
		return 0, e
	}
	n := min(act.(int), len(p))
	s.sent.Write(p[:n])
	return n, 0
}

func TestRead(t *testing.T) {
	s := &script{reads: []any{"abcd", syscall.EINTR, "efg", "more"}}
	c := nonblock.New(s, nil)
	buf := make([]byte, 4)
	if n, err := c.Read(buf); n != 0 || err != nonblock.ErrWait {
		t.Errorf("before anything came: got %d and %v", n, err)
	}
	c.Ready(false)
	for _, want := range []string{"abcd", "efg"} {
		if n, err := c.Read(buf); string(buf[:n]) != want || err != nil {
			t.Fatalf("got %q and %v, want %q", buf[:n], err, want)
		}
	}
	if n, err := c.Read(buf); n != 0 || err != nonblock.ErrWait || c.More() || len(s.reads) != 1 {
		t.Errorf("after a read that left room: got %d and %v, %d still to read; want a wait for the next report", n, err, len(s.reads))
	}
	//lint:ignore SA1019 crypto/tls asks
	if !nonblock.ErrWait.Timeout() || !nonblock.ErrWait.Temporary() {
		t.Error("crypto/tls would take the wait for the connection's end")
	}
}

// One that never has enough lets the others have their turn.
func TestReadTakesTurns(t *testing.T) {
	s := &script{}
	for range 100 {
		s.reads = append(s.reads, "full")
	}
	c := nonblock.New(s, nil)
	buf := make([]byte, 4)
	reads := 0
	for turns := 0; len(s.reads) > 0; turns++ {
		if turns > 10 {
			t.Fatal("reading goes on without end")
		}
		c.Ready(false)
		for {
			if _, err := c.Read(buf); err != nil {
				break
			}
			reads++
		}
		if len(s.reads) > 0 && !c.More() {
			t.Fatal("what is left will not be reported")
		}
	}
	if reads != 100 {
		t.Errorf("%d reads of 100", reads)
	}
}

func TestReadEnds(t *testing.T) {
	for _, tt := range []struct {
		act  any
		want error
	}{{"", io.EOF}, {syscall.ECONNRESET, syscall.ECONNRESET}} {
		c := nonblock.New(&script{reads: []any{"ab", tt.act}}, nil)
		c.Ready(true) // the other side has closed: what is there is read to its end
		buf := make([]byte, 4)
		if n, err := c.Read(buf); n != 2 || err != nil {
			t.Errorf("got %d and %v", n, err)
		}
		if n, err := c.Read(buf); n != 0 || !errors.Is(err, tt.want) {
			t.Errorf("got %d and %v, want %v", n, err, tt.want)
		}
	}
}

func TestFlush(t *testing.T) {
	s := &script{sends: []any{3, syscall.EINTR, syscall.EAGAIN, 2}}
	c := nonblock.New(s, nil)
	c.Write([]byte("hello, "))
	c.Write([]byte("world"))
	if err := c.Flush(); err != nil || c.Unsent() != 9 || s.sent.String() != "hel" {
		t.Errorf("got %v, %d unsent, %q sent", err, c.Unsent(), &s.sent)
	}
	c.Write([]byte("!"))
	if err := c.Flush(); err != nil || c.Unsent() != 0 || s.sent.String() != "hello, world!" {
		t.Errorf("got %v, %d unsent, %q sent", err, c.Unsent(), &s.sent)
	}
	s.sends = []any{syscall.EPIPE}
	c.Write([]byte("more"))
	if err := c.Flush(); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v, want the socket's error", err)
	}
	if c.Drop(); c.Unsent() != 0 || c.Flush() != nil {
		t.Error("what was dropped is still to be sent")
	}
}
