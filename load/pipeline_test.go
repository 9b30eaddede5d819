package load_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
)

// pipelined starts a server that answers each connection by serve, and returns
// the load to offer it.
func pipelined(t *testing.T, serve func(*bufio.Reader, net.Conn)) load.Options {
	t.Helper()
	needs(t, load.Epoll)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(bufio.NewReader(c), c)
			}()
		}
	}()
	return load.Options{
		Targets:     []load.Target{{URL: "http://" + l.Addr().String() + "/a"}, {URL: "http://" + l.Addr().String() + "/bb"}},
		Connections: 3, Pipeline: 16, Requests: 1000, Timeout: 5 * time.Second, Engine: load.Epoll,
	}
}

// readBatch reads n requests.
func readBatch(r *bufio.Reader, n int) ([]string, error) {
	var paths []string
	for range n {
		req, err := http.ReadRequest(r)
		if err != nil {
			return paths, err
		}
		paths = append(paths, req.URL.Path)
	}
	return paths, nil
}

// Requests are sent 16 at once, and each is counted with the answer that is its
// own.
func TestPipeline(t *testing.T) {
	var most atomic.Int64
	o := pipelined(t, func(r *bufio.Reader, c net.Conn) {
		for {
			paths, err := readBatch(r, 1)
			for err == nil && r.Buffered() > 0 {
				var more []string
				more, err = readBatch(r, 1)
				paths = append(paths, more...)
			}
			if err != nil {
				return
			}
			most.Store(max(most.Load(), int64(len(paths))))
			var answers strings.Builder
			for _, p := range paths {
				fmt.Fprintf(&answers, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(p), p)
			}
			whole := answers.String()
			io.WriteString(c, whole[:len(whole)/3]) // in parts that end anywhere
			time.Sleep(time.Millisecond)
			io.WriteString(c, whole[len(whole)/3:])
		}
	})
	for i := range o.Targets {
		n := int64(len(o.Targets[i].URL) - strings.LastIndexByte(o.Targets[i].URL, '/'))
		o.Targets[i].Verify.Length = &n
	}
	res, err := load.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Counts.Status[2]; got != 1000 || res.Counts.Unverified != 0 || res.Counts.Scheduled != 1000 {
		t.Errorf("got %+v, want 1000 answers as their targets ask", res.Counts)
	}
	if most.Load() != 16 {
		t.Errorf("the server saw %d requests at once, want 16", most.Load())
	}
	if res.Response.Count() != 1000 || res.Opened != 3 {
		t.Errorf("got %d response times on %d connections, want 1000 on 3", res.Response.Count(), res.Opened)
	}
}

// What a server leaves unanswered is counted, each request once.
func TestPipelineEnds(t *testing.T) {
	tests := []struct {
		name   string
		answer string // to the first request of a batch; then the connection is closed
		check  func(load.Counts) bool
	}{
		{"closing", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", func(c load.Counts) bool { return c.Status[2]*15 == c.Reset && c.Reset > 0 }},
		{"closed", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", func(c load.Counts) bool { return c.Status[2]*15 == c.Reset && c.Reset > 0 }},
		{"cut", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", func(c load.Counts) bool { return c.Short*15 == c.Reset && c.Short > 0 }},
		{"malformed", "HTTQ", func(c load.Counts) bool { return c.Malformed*15 == c.Reset && c.Malformed > 0 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := pipelined(t, func(r *bufio.Reader, c net.Conn) {
				if _, err := readBatch(r, 16); err == nil {
					io.WriteString(c, tt.answer)
				}
			})
			o.Requests = 160
			res, err := load.Run(t.Context(), o)
			if res == nil {
				t.Fatal(err)
			}
			c := res.Counts
			if sum := c.Answered() + c.Refused + c.Reset + c.Timeout + c.Short + c.Malformed; sum != 160 || !tt.check(c) {
				t.Errorf("got %+v, want 160 in all, and of each 16 the first as answered, the rest reset", c)
			}
		})
	}
}

// A server that answers on a connection before it closes it is no dead one: the next
// is asked at once.
func TestPipelineClosedDoesNotRest(t *testing.T) {
	o := pipelined(t, func(r *bufio.Reader, c net.Conn) {
		if _, err := readBatch(r, 16); err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	o.Connections, o.Requests = 1, 100*16
	begun := time.Now()
	r := run(t, t.Context(), o)
	// To rest half a second after each of the 100 connections would take 45 s.
	if took := time.Since(begun); r.Opened != 100 || took > 15*time.Second {
		t.Errorf("got %+v on %d connections within %v, want 100 connections one after the other", r.Counts, r.Opened, took)
	}
}

func TestPipelineRefused(t *testing.T) {
	whole := load.Target{URL: "http://127.0.0.1:1/"}
	tests := []struct {
		o    load.Options
		want string
	}{
		{load.Options{Targets: []load.Target{{URL: "https://127.0.0.1:1/"}}, Protocol: load.HTTP2, Pipeline: 2}, "does not pipeline"},
		{load.Options{Targets: []load.Target{whole}, Pipeline: -1}, "Pipeline is negative"},
		{load.Options{Targets: []load.Target{whole}, Pipeline: 5000}, "too many"},
		{load.Options{Targets: []load.Target{whole}, Pipeline: 2, NewConnections: 1}, "connections of their own"},
		{load.Options{Targets: []load.Target{whole, {URL: "http://127.0.0.1:2/"}}, Pipeline: 2}, "one host"},
		{load.Options{Targets: []load.Target{{URL: whole.URL, Method: "POST", Body: make([]byte, 1<<20)}}, Pipeline: 2}, "long bodies"},
	}
	for _, tt := range tests {
		if _, err := load.Run(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q in it", tt.o, err, tt.want)
		}
	}
}
