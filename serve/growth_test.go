//go:build linux

package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/tarehq/tare/serve"
)

// TestConnectionGrowth opens more and more connections to a server in a process of its own. It tells what
// the process holds while each of them waits for its handler, once all have been idle, and when
// they have ended. A connection may take one descriptor and, while it is at work, one goroutine;
// its memory may not grow with their number, and all goes back. TARE_GROWTH is the most
// connections, 2,048 if it is not set; with more http.Server is measured beside.
func TestConnectionGrowth(t *testing.T) {
	usual := 2048
	if raceEnabled || testing.Short() { // and memory tells nothing
		usual = 512
	}
	most := number(t, "TARE_GROWTH", usual)
	needFiles(t, most)
	servers := []orders{{}, {Reuse: true}}
	if most > usual {
		servers = append(servers, orders{Standard: true})
	}
	for _, o := range servers {
		var before grown
		for _, n := range []int{64, 512, 2048, 8192} {
			if n > most {
				break
			}
			g := growTo(t, o, n)
			t.Logf("%s: %5d connections, at work: %v; idle: %v; ended: %v", o.name(), n, g.atWork, g.idle, g.ended)
			g.check(t, o)
			if each := g.perConn(g.atWork); !raceEnabled && !o.Standard && before.conns >= 512 && each > before.perConn(before.atWork)*5/4+1024 {
				t.Errorf("each of %d connections takes %d bytes at work, each of %d took %d", n, each, before.conns, before.perConn(before.atWork))
			}
			before = g
		}
	}
}

// grown is what a server's process held for so many connections, more than before them.
type grown struct {
	conns               int
	atWork, idle, ended held
}

// held is what a process holds, or by how much that has grown.
type held struct{ goroutines, descriptors, resident int }

func (h held) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d KiB", h.goroutines, h.descriptors, h.resident>>10)
}

func (h held) less(other held) held {
	return held{h.goroutines - other.goroutines, h.descriptors - other.descriptors, h.resident - other.resident}
}

func (g *grown) perConn(h held) int { return h.resident / g.conns }

func (p *outpost) holds() held { return held{p.goroutines(), p.descriptors(), p.resident()} }

// growTo serves n connections, from the first to the last.
func growTo(t *testing.T, o orders, n int) grown {
	t.Helper()
	p := found(t, o)
	for range 200 {
		serveOne(t, p.addr, false)
	}
	comes(t, "earlier connections to end", func() bool { return p.goroutines() < 20 })
	before := p.holds()
	conns := p.burst(n)
	for _, nc := range conns {
		if _, err := io.WriteString(nc, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	comes(t, "all handlers to run", func() bool { return p.goroutines() >= n })
	g := grown{conns: n, atWork: p.holds().less(before)}
	p.tell("release")
	for _, nc := range conns {
		if err := hearOK(bufio.NewReader(nc)); err != nil {
			t.Fatal(err)
		}
	}
	if !o.Standard { // whose idle connections keep their goroutines
		comes(t, "all connections to be parked", func() bool { return p.goroutines() < 20 })
	}
	g.idle = p.holds().less(before)
	for _, nc := range conns {
		nc.Close()
	}
	comes(t, "all connections to end", func() bool { return p.descriptors() < before.descriptors+20 && p.goroutines() < 20 })
	g.ended = p.holds().less(before)
	return g
}

// check compares goroutines and descriptors with what they may be at most.
func (g *grown) check(t *testing.T, o orders) {
	t.Helper()
	const few = 24 // connections that are just ending, and of the process's own: a poller, the clock, the one that closes
	for _, at := range []struct {
		name             string
		h                held
		goroutines, open int
	}{
		{"at work", g.atWork, g.conns, g.conns},
		{"idle", g.idle, 0, g.conns},
		{"after all have ended", g.ended, 0, 0},
	} {
		if at.h.goroutines > at.goroutines+few && !o.Standard {
			t.Errorf("%s: %d connections %s have %d goroutines, want at most %d", o.name(), g.conns, at.name, at.h.goroutines, at.goroutines+few)
		}
		if at.h.descriptors > at.open+few {
			t.Errorf("%s: %d connections %s have %d descriptors, want at most %d", o.name(), g.conns, at.name, at.h.descriptors, at.open+few)
		}
	}
}

// server returns the server that is ordered.
func (o orders) server(s *serve.Server) interface {
	Serve(net.Listener) error
	Close() error
} {
	if o.Standard {
		return &http.Server{Handler: s.Handler}
	}
	return s
}

func (o orders) name() string {
	switch {
	case o.Standard:
		return "http.Server"
	case o.Reuse:
		return "serve, Reuse"
	}
	return "serve"
}
