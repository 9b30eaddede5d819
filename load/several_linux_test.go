package load_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
)

// Connections that fail at one of a host's addresses at the same time all go on to the
// next, whether it refuses or never answers.
func TestAddressesThatFailTogether(t *testing.T) {
	for name, silent := range map[string]bool{"refuses": false, "is silent": true} {
		t.Run(name, func(t *testing.T) {
			port, shut := crowded(t)
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
			if err != nil {
				t.Skip(err)
			}
			s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
			go s.Serve(l)
			defer s.Close()
			nameServer(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2})
			const n, conns = 80, 8
			var lost uint64
			timeout := 10 * time.Second
			if silent {
				timeout, lost = 300*time.Millisecond, conns
			} else {
				time.AfterFunc(200*time.Millisecond, shut) // what is sent again is refused
			}
			r, err := load.Run(context.Background(), load.Options{Engine: load.Epoll, Threads: 1, Connections: conns, Requests: n,
				Timeout: timeout, Targets: []load.Target{{URL: "http://example.com:" + port}}})
			if err != nil || r.Counts.Status[2] != n-lost || r.Counts.Timeout != lost {
				t.Errorf("got %+v and error %v, want %d timed out and the others answered", r.Counts, err, lost)
			}
		})
	}
}

// crowded is a port of 127.0.0.1 whose listen queue is full, until it is shut.
func crowded(t *testing.T) (port string, shut func()) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	shut = sync.OnceFunc(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil { // room for one
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port = strconv.Itoa(name.(*syscall.SockaddrInet4).Port)
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); shut() })
	return port, shut
}
