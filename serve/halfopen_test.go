//go:build linux && !386 && !s390x

package serve_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/internal/sys"
)

// TestShutdownTakesHalfOpen shuts down when clients are connected and have asked, and the
// kernel has yet to see that on the server's side, as on a busy machine that has not come
// to process their packets: all must be answered. The clients' kernel sends what was dropped
// again after 200 ms.
func TestShutdownTakesHalfOpen(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			var config net.ListenConfig
			config.SetMultipathTCP(false)
			l, err := config.Listen(t.Context(), "tcp", addr)
			if err != nil {
				t.Skipf("SKIPPED: listening: %v", err)
			}
			var half bool
			look := func(fd uintptr) (err error) { half, err = sys.HalfOpen(fd); return err }
			if err := onSocket(l, look); err != nil {
				t.Skipf("SKIPPED: what is half open is not to be seen: %v", err)
			}
			if half {
				t.Error("half open before anybody came")
			}
			if err := onSocket(l, completeNothing); err != nil {
				t.Fatal(err)
			}
			listens := make(chan struct{})
			s := &serve.Server{Handler: http.HandlerFunc(stateHandler), Limits: patient,
				BaseContext: func(net.Listener) context.Context { close(listens); return context.Background() }}
			served := goServe(s, l)
			<-listens
			var answers sync.WaitGroup
			for i := range 8 {
				nc := call(t, l.Addr().String())
				io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
				answers.Go(func() {
					defer nc.Close()
					if err := hearOK(bufio.NewReader(nc)); err != nil {
						t.Errorf("connection %d: %v", i, err)
					}
				})
			}
			completed := 0
			err = onSocket(l, func(fd uintptr) (err error) { completed, err = sys.Backlog(fd); return err })
			if err := errors.Join(err, onSocket(l, look)); err != nil || !half || completed > 0 {
				t.Errorf("half open: %v, completed: %d, %v; want some and none", half, completed, err)
			}
			if err := s.Shutdown(context.Background()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			answers.Wait()
			if err := <-served; err != http.ErrServerClosed {
				t.Errorf("Serve: %v", err)
			}
		})
	}
}

// dialedAtClose has a client come when it is told to close.
type dialedAtClose struct {
	*net.TCPListener
	connected chan bool
}

func (l dialedAtClose) Close() error {
	nc, err := net.DialTimeout("tcp", l.Addr().String(), 200*time.Millisecond)
	if err == nil {
		defer nc.Close()
	}
	l.connected <- err == nil
	return l.TCPListener.Close()
}

// TestShutdownBeginsNothing shuts down a server whose listener takes its time to close, as
// on a busy machine: no client is connected meanwhile, of whom nobody would know.
func TestShutdownBeginsNothing(t *testing.T) {
	l := dialedAtClose{listenPlainly(t).(*net.TCPListener), make(chan bool, 1)}
	listens := make(chan struct{})
	s := &serve.Server{BaseContext: func(net.Listener) context.Context { close(listens); return context.Background() }}
	served := goServe(s, l)
	<-listens
	if err := s.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("Serve: %v", err)
	}
	if <-l.connected {
		t.Error("a client was connected while the listener was closed")
	}
}

func onSocket(l net.Listener, do func(fd uintptr) error) error {
	raw, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = do(fd) }); cerr != nil {
		return cerr
	}
	return err
}

// completeNothing has a listening socket drop all but the first packets of connections.
func completeNothing(fd uintptr) error {
	filter := [...]syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: 13}, // the flags of TCP
		{Code: syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K, K: 0x02, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 1 << 18}, // with SYN: all of it
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
	}
	prog := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := syscall.Syscall6(syscall.SYS_SETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_ATTACH_FILTER,
		uintptr(unsafe.Pointer(&prog)), unsafe.Sizeof(prog), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
