//go:build linux && amd64

package reply_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/internal/sockets"
)

// late is by how much what is watched answers late; nothing else here takes so long
// but on a machine that is at a stand.
const late = 50 * time.Millisecond

// start watches a process.
func start(t testing.TB, pid int) *reply.Watch {
	t.Helper()
	w, err := reply.Start(pid)
	if errors.Is(err, cost.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// ended returns how many waits have ended, and how many of them took what is late.
func ended(t *testing.T, w *reply.Watch) (all, slow uint64) {
	t.Helper()
	seen, err := w.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range seen.Times {
		all += b.Count
		if b.Below > late {
			slow += b.Count
		}
	}
	return all, slow
}

// get asks for a path and reads the answer.
func get(t *testing.T, c *http.Client, url string) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
}

// lazily answers late where it is asked to, and in parts where it is asked to.
func lazily(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/late" {
		time.Sleep(late)
	}
	io.WriteString(w, "hello")
	if r.URL.Path == "/parts" {
		for range 3 {
			w.(http.Flusher).Flush()
			time.Sleep(late)
			io.WriteString(w, "hello")
		}
	}
}

// TestHTTP times requests of several kinds. The clients are in the same process:
// what they send and get must not count.
func TestHTTP(t *testing.T) {
	tests := []struct {
		name      string
		path      string
		opened    bool // before watching begins
		fresh     bool // a connection each
		tls       bool
		unix      bool
		slow      uint64
		perOpened uint64 // waits besides requests', at most, for each connection
	}{
		{name: "kept alive", path: "/late", slow: 4},
		{name: "quick", path: "/"},
		{name: "opened before", path: "/late", opened: true, slow: 4},
		{name: "a connection each", path: "/late", fresh: true, slow: 4},
		{name: "in parts", path: "/parts"},
		{name: "TLS", path: "/late", tls: true, slow: 4, perOpened: 3},
		{name: "Unix socket", path: "/late", unix: true, slow: 4},
		{name: "Unix socket, opened before", path: "/late", unix: true, opened: true, slow: 4},
		{name: "Unix socket, a connection each", path: "/late", unix: true, fresh: true, slow: 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(lazily))
			defer s.Close()
			transport := &http.Transport{DisableKeepAlives: tt.fresh}
			switch {
			case tt.unix:
				s.Listener.Close()
				path := sockets.Path(t)
				l, err := net.Listen("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				s.Listener = l
				transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }
				s.Start()
				s.URL = "http://there"
			case tt.tls:
				s.StartTLS()
				transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
			default:
				s.Start()
			}
			c := &http.Client{Transport: transport}
			defer c.CloseIdleConnections()
			if tt.opened {
				get(t, c, s.URL+"/")
			}
			w := start(t, os.Getpid())
			const n = 4
			for range n {
				get(t, c, s.URL+tt.path)
			}
			all, slow := ended(t, w)
			if all < n || all > n+tt.perOpened || slow < tt.slow {
				t.Errorf("got %d waits, %d of them late, want %d to %d, %d late", all, slow, n, n+tt.perOpened, tt.slow)
			}
		})
	}
}

// listen listens on a port of this machine.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// dial opens a connection to l.
func dial(t testing.TB, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// accept accepts a connection from l.
func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends bytes from one end to the other.
func say(t *testing.T, from, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(from, text); err != nil {
		t.Fatal(err)
	}
	if to != nil {
		if _, err := io.ReadFull(to, make([]byte, len(text))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaits holds what is counted against what was sent, in whatever order.
func TestWaits(t *testing.T) {
	tests := []struct {
		name    string
		talk    func(t *testing.T, server, client net.Conn)
		all     uint64
		slow    uint64
		waiting uint64
	}{
		{name: "unasked", talk: func(t *testing.T, server, client net.Conn) {
			say(t, server, client, "hello")
			say(t, server, client, "hello")
		}},
		{name: "waits", talk: func(t *testing.T, server, client net.Conn) {
			say(t, client, server, "question")
		}, waiting: 1},
		{name: "never read", talk: func(t *testing.T, server, client net.Conn) {
			say(t, client, nil, "question")
			time.Sleep(late)
			say(t, client, nil, "question") // belongs to the same wait
			say(t, server, client, "answer")
		}, all: 1, slow: 1},
		{name: "read, then other", talk: func(t *testing.T, server, client net.Conn) {
			say(t, client, server, "no question")
			time.Sleep(late)
			say(t, client, server, "question")
			say(t, server, client, "answer")
		}, all: 1},
		{name: "gone", talk: func(t *testing.T, server, client net.Conn) {
			say(t, client, server, "question")
			server.Close()
		}},
		{name: "given up", talk: func(t *testing.T, server, client net.Conn) {
			say(t, client, server, "question")
			say(t, server, client, "answer")
			client.Close()
			if _, err := server.Read(make([]byte, 1)); err != io.EOF {
				t.Fatal(err)
			}
		}, all: 1},
		{name: "much that wants no answer", talk: func(t *testing.T, server, client net.Conn) {
			for range 3 {
				say(t, client, server, "question")
				say(t, server, client, "answer")
				say(t, client, server, "noted")
			}
		}, all: 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := listen(t)
			w := start(t, os.Getpid())
			client := dial(t, l)
			tt.talk(t, accept(t, l), client)
			all, slow := ended(t, w)
			if all != tt.all || slow < tt.slow {
				t.Errorf("got %d waits, %d of them late, want %d, %d late", all, slow, tt.all, tt.slow)
			}
			if seen, err := w.Read(); err != nil || seen.Waiting != tt.waiting {
				t.Errorf("got %d that wait now, %v, want %d", seen.Waiting, err, tt.waiting)
			}
		})
	}
}

// TestQueue counts what data waits for while nobody accepts its connection.
func TestQueue(t *testing.T) {
	l := listen(t)
	w := start(t, os.Getpid())
	client := dial(t, l)
	say(t, client, nil, "question")
	time.Sleep(late)
	say(t, accept(t, l), client, "answer")
	if all, slow := ended(t, w); all != 1 || slow != 1 {
		t.Errorf("got %d waits, %d of them late, want one, late", all, slow)
	}
}

// TestNobody says that there is no process.
func TestNobody(t *testing.T) {
	start(t, os.Getpid())
	const most = 1 << 22 // the kernel's numbers are below it
	if _, err := reply.Start(most); err == nil || errors.Is(err, cost.ErrNotSupported) {
		t.Errorf("got %v, want an error", err)
	}
}
