package load_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/internal/sockets"
	"github.com/tarehq/tare/load"
)

// A Unix socket's full listen queue refuses at once: that is no time-out, and
// tells what to do.
func TestListenQueueFull(t *testing.T) {
	path := sockets.Path(t)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil { // room for one
		t.Fatal(err)
	}
	eachEngine(t, func(t *testing.T, engine load.Engine) {
		r, err := load.Run(context.Background(), load.Options{Engine: engine, Unix: path, Requests: 8, Connections: 4,
			Timeout: 200 * time.Millisecond, Targets: []load.Target{{URL: "http://h/"}}})
		if r == nil {
			t.Fatal(err)
		}
		checkSums(t, r)
		if r.Counts.Refused < 4 || !strings.Contains(err.Error(), "listen queue is full") {
			t.Errorf("got %+v, error %v; want most refused and the reason", r.Counts, err)
		}
	})
}
