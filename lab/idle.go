package lab

import (
	"bufio"
	"bytes"
	"cmp"
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
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// errOwnLimit marks connections that this process, not the specimen, could not
// open.
var errOwnLimit = errors.New("this process can open no more connections; see tare env for its limits")

// idlers are connections that got one answer each and are idle since.
type idlers struct {
	mu    sync.Mutex
	conns []net.Conn
}

// idle opens the workload's idle connections, which stay to the end of the
// session, and measures what they take of the specimen's memory. It comes before
// the load: later the heap has room for them already.
func (s *session) idle(ctx context.Context, t *record.Trial) error {
	n := s.w.Idle
	if n == 0 {
		return nil
	}
	if err := s.collect(ctx); err != nil {
		return err
	}
	before, unread := s.proc.Usage(false)
	if err := s.idlers.open(ctx, n, s.proc, s.w.Targets[0]); err != nil {
		return fmt.Errorf("opening %d idle connections: %w", n, err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(study.IdleSettle):
	}
	socks, err := s.proc.Sockets()
	if open := socks["ESTABLISHED"]; err == nil && open < n {
		return fmt.Errorf("of %d idle connections the arm closed %d within %v", n, n-open, study.IdleSettle)
	}
	if err := s.collect(ctx); err != nil {
		return err
	}
	after, err := s.proc.Usage(false)
	if err := cmp.Or(unread, err); err != nil {
		if errors.Is(err, arm.ErrNotSupported) {
			return nil // a URL, or a system that does not tell: then there is no such metric
		}
		return err
	}
	t.Metrics["idle_connection"] = (float64(after.RSS) - float64(before.RSS)) / float64(n)
	return nil
}

// collect has the specimen give back what it does not hold any more, if it takes
// questions: what connections cost while idle, not while they were opened, is
// asked for.
func (s *session) collect(ctx context.Context) error {
	if err := s.proc.GC(ctx); err != nil && !untold(err) {
		return fmt.Errorf("collecting the arm's garbage: %w", err)
	}
	return nil
}

// openers is how many connections are opened at a time: enough to keep the
// specimen busy, too few to make it hold a crowd of requests at once.
const openers = 4

// open opens n connections and has the target answered once on each.
func (i *idlers) open(ctx context.Context, n int, to *arm.Process, g study.Target) error {
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
				if err := i.openOne(ctx, to, g); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (i *idlers) openOne(ctx context.Context, to *arm.Process, g study.Target) error {
	c, err := dial(ctx, to)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("%w: %w", errOwnLimit, err)
	}
	if err != nil {
		return err
	}
	i.mu.Lock()
	i.conns = append(i.conns, c)
	i.mu.Unlock()
	return answeredOn(ctx, c, to.URL(), g)
}

// dial opens a connection to an arm. A URL need not name its port, and may ask for TLS.
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

// close resets the connections, so that none lingers in TIME_WAIT and takes a
// port from the next trial.
func (i *idlers) close() {
	for _, c := range i.conns {
		under := c
		if secure, ok := c.(*tls.Conn); ok {
			under = secure.NetConn()
		}
		if tcp, ok := under.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it may be closed by the other side
		}
		_ = c.Close()
	}
}
