//go:build unix

package flight_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/flight"
)

// BenchmarkRecorder says what the recorder costs a request: CPU of the process with
// the recorder on against off, in windows that follow one another. The client is in
// the process as well: what it uses counts, and its waits are noted like the
// server's. on/off is the median of the pairs' ratios.
//
// spin=0 is a handler that does nothing, which is the worst case there is.
func BenchmarkRecorder(b *testing.B) {
	for _, spin := range []time.Duration{0, 50 * time.Microsecond} {
		b.Run(fmt.Sprintf("spin=%s", spin), func(b *testing.B) {
			h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for end := time.Now().Add(spin); time.Now().Before(end); {
				}
			})
			s := httptest.NewServer(h)
			defer s.Close()
			c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			p := &peer{c: c, r: bufio.NewReader(c)}
			p.window(b)
			var ratios []float64
			for b.Loop() {
				off := p.window(b)
				on := watched(b, p)
				on += watched(b, p)
				off += p.window(b)
				ratios = append(ratios, on/off)
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "on/off")
			b.ReportMetric(0, "ns/op") // how long the windows are says nothing
		})
	}
}

// watched is a window with the recorder on.
func watched(b *testing.B, p *peer) float64 {
	r, err := flight.New(flight.Options{SlowerThan: time.Hour, Sink: func(flight.Request) (io.WriteCloser, error) { return nil, nil }})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	return p.window(b)
}

// peer is a client that does as little as one can.
type peer struct {
	c net.Conn
	r *bufio.Reader
}

// window sends requests for a while and returns the CPU that one took, in
// nanoseconds.
func (p *peer) window(b *testing.B) float64 {
	begun, n := cpu(b), 0
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); n++ {
		if _, err := io.WriteString(p.c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			b.Fatal(err)
		}
		for line := "x"; line != ""; {
			text, err := p.r.ReadString('\n')
			if err != nil {
				b.Fatal(err)
			}
			line = strings.TrimSpace(text)
		}
	}
	return float64(cpu(b)-begun) / float64(n)
}

// cpu is what the process has used.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
