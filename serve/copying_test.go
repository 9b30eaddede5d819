//go:build linux

package serve_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// stalling serves h with a short StallTimeout and returns a connection to it
// that has asked for something in HTTP/1.0, so that the kernel copies. The kernel wakes
// who writes once a third of the socket's buffer is empty: a small one soon is.
func stalling(t *testing.T, h http.HandlerFunc, wrap func(net.Listener) net.Listener) net.Conn {
	t.Helper()
	l := listener(t)
	s := &serve.Server{Handler: h, Limits: serve.Limits{StallTimeout: time.Second}, ConnState: func(nc net.Conn, s http.ConnState) {
		if s == http.StateNew {
			nc.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(16 << 10)
		}
	}}
	go s.Serve(wrap(l))
	t.Cleanup(func() { s.Close() })
	nc := slowly(t, l.Addr().String(), true)
	t.Cleanup(func() { nc.Close() })
	io.WriteString(nc, "GET / HTTP/1.0\r\n\r\n")
	nc.SetReadDeadline(time.Now().Add(long))
	return nc
}

// TestLongFile has a client take a file for longer than StallTimeout, without
// standing still, where nothing tells what it has acknowledged.
func TestLongFile(t *testing.T) {
	const size = 4 << 20
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Truncate(size)
	nc := stalling(t, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, f.Name()) },
		func(l net.Listener) net.Listener { return takingListener{l, make(chan bool, size)} })
	total := 0
	for buf := make([]byte, 32<<10); err == nil; time.Sleep(20 * time.Millisecond) {
		var n int
		n, err = io.ReadFull(nc, buf)
		total += n
	}
	if err != io.ErrUnexpectedEOF && err != io.EOF || total < size {
		t.Errorf("read %d bytes, %v, want all %d and the head", total, err, size)
	}
}

// TestSlowSource has a handler copy from a pipe into which nothing comes for
// longer than StallTimeout: the client has taken all there was.
func TestSlowSource(t *testing.T) {
	failed := make(chan error, 1)
	nc := stalling(t, func(w http.ResponseWriter, r *http.Request) {
		from, to, err := os.Pipe()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		go func() {
			defer to.Close()
			to.Write(make([]byte, 600))
			time.Sleep(2500 * time.Millisecond)
			to.WriteString("end")
		}()
		_, err = io.Copy(w, from)
		failed <- err
	}, func(l net.Listener) net.Listener { return l })
	all, err := io.ReadAll(nc)
	if len(all) < 600 || string(all[len(all)-3:]) != "end" || err != nil {
		t.Errorf("read %d bytes, %v, want all to the end", len(all), err)
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
}
