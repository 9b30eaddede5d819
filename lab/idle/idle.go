// Package idle opens connections to an arm that do nothing but stay.
//
// Each connection got one answer to the target, correct and in time, and is kept until
// Close. A URL need not name its port, and may ask for TLS.
package idle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/study"
)

// ErrOwnLimit marks connections that this process, not the arm, could not open.
var ErrOwnLimit = errors.New("this process can open no more connections; see tare env for its limits")

// Connections got one answer each and are idle since. The zero value holds none. It is
// safe for concurrent use but for Close, which comes last.
type Connections struct {
	mu   sync.Mutex
	open []net.Conn
}

// openers is how many connections are opened at a time: enough to keep the arm busy,
// too few to make it hold a crowd of requests at once.
const openers = 4

// Open opens n more connections and has the target answered once on each. What is open
// when one fails stays open until Close.
func (c *Connections) Open(ctx context.Context, n int, to *arm.Process, g study.Target) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, n)
	for range n {
		places <- struct{}{}
	}
	close(places)
	var all sync.WaitGroup
	for range openers {
		all.Go(func() {
			for range places {
				if ctx.Err() != nil {
					return
				}
				if err := c.openOne(ctx, to, g); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (c *Connections) openOne(ctx context.Context, to *arm.Process, g study.Target) error {
	conn, err := dial(ctx, to)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("%w: %w", ErrOwnLimit, err)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.open = append(c.open, conn)
	c.mu.Unlock()
	return answeredOn(ctx, conn, to.URL(), g)
}

func dial(ctx context.Context, to *arm.Process) (net.Conn, error) {
	d := &net.Dialer{Timeout: answer.Within}
	if strings.HasPrefix(to.URL(), "https:") {
		return (&tls.Dialer{NetDialer: d, Config: answer.TLS(to.URL())}).DialContext(ctx, "tcp", to.Addr())
	}
	return d.DialContext(ctx, "tcp", to.Addr())
}

// answeredOn has the target answered on a connection, which must be kept.
func answeredOn(ctx context.Context, c net.Conn, base string, g study.Target) error {
	if err := c.SetDeadline(time.Now().Add(answer.Within)); err != nil {
		return err
	}
	req, err := answer.NewRequest(ctx, base, g)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := req.Write(&out); err != nil {
		return err
	}
	if _, err := c.Write(out.Bytes()); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if res.Close {
		return errors.New("the arm closes a connection after its first answer")
	}
	return answer.Check(g.Verify, answer.New(res, body))
}

// Close resets the connections, so that none lingers in TIME_WAIT and takes a port from
// those that come after.
func (c *Connections) Close() {
	for _, conn := range c.open {
		under := conn
		if secure, ok := conn.(*tls.Conn); ok {
			under = secure.NetConn()
		}
		if tcp, ok := under.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it may be closed by the other side
		}
		_ = conn.Close()
	}
}
