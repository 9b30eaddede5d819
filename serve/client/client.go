package client

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/client/internal/ending"
	"github.com/tarehq/tare/serve/internal/budget"
	"github.com/tarehq/tare/serve/internal/repeat"
)

// Options of a client. The zero value is right for calls between services.
type Options struct {
	// Next sends the requests. Nil: [NewTransport].
	Next http.RoundTripper
	// Timeout is for requests without a deadline, their answers' bodies included.
	// 0: 30 s; negative: none, as for streams.
	Timeout time.Duration
	// AttemptTimeout is how long one attempt waits for the answer's header, so that
	// another one may be made. 0: as long as the request has.
	AttemptTimeout time.Duration
	// Attempts is how often a request is sent at most, hedges not counted. 0: 3.
	Attempts int
	// Backoff bounds the wait before the second attempt; it doubles with each further
	// one, up to 5 s. Each wait is of random length up to its bound. 0: 100 ms.
	Backoff time.Duration
	// RetryAfter is the longest Retry-After that is waited for. 0: 10 s.
	RetryAfter time.Duration
	// Budget is the share of requests that may be sent again or hedged. Each host has
	// ten attempts besides, and one more each second. 0: 0.1; negative: no such attempts.
	Budget float64
	// Hedge has a second attempt made if there is no answer after this time. The first
	// answer is taken and the other attempt ended. 0: none. A sensible value is what
	// nineteen of twenty requests take at most.
	Hedge time.Duration
	// Repeatable says which requests may be sent more than once. Nil: those with an
	// idempotent method or an Idempotency-Key.
	Repeatable func(*http.Request) bool
	// DeadlineField is the name of a header field that says how many milliseconds the
	// request has, for upstreams that read it. Empty: none.
	DeadlineField string
}

const (
	defaultTimeout    = 30 * time.Second
	defaultAttempts   = 3
	defaultBackoff    = 100 * time.Millisecond
	longestBackoff    = 5 * time.Second
	defaultRetryAfter = 10 * time.Second
	defaultBudget     = 0.1

	reserve = 10          // attempts that a host has at most without having earned them
	refill  = time.Second // in which it gains one
)

// Client sends requests with deadlines and repeats. It is safe for concurrent use.
type Client struct {
	o       Options
	seed    maphash.Seed
	budgets [64]hosts

	requests, retries, hedges, refused atomic.Uint64
}

// hosts are those that share a budget.
type hosts struct {
	budget.Budget
	_ [32]byte // a cache line for each
}

// Counts are what a client has done so far.
type Counts struct {
	Requests uint64 // that callers made
	Retries  uint64 // attempts after the first
	Hedges   uint64 // attempts beside another one
	Refused  uint64 // attempts that the budget did not have
}

// New returns a client, or an error that says which option is wrong.
func New(o Options) (*Client, error) {
	if o.AttemptTimeout < 0 || o.Backoff < 0 || o.RetryAfter < 0 || o.Hedge < 0 {
		return nil, fmt.Errorf("client: Options has a negative time: AttemptTimeout %s, Backoff %s, RetryAfter %s, Hedge %s", o.AttemptTimeout, o.Backoff, o.RetryAfter, o.Hedge)
	}
	if o.Attempts < 0 || o.Attempts > 100 {
		return nil, fmt.Errorf("client: Options.Attempts is %d; set from 1 to 100, or 0 for %d", o.Attempts, defaultAttempts)
	}
	if !(o.Budget <= 1) {
		return nil, fmt.Errorf("client: Options.Budget is %v; set a share up to 1, or 0 for %v", o.Budget, defaultBudget)
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Attempts = cmp.Or(o.Attempts, defaultAttempts)
	o.Backoff = cmp.Or(o.Backoff, defaultBackoff)
	o.RetryAfter = cmp.Or(o.RetryAfter, defaultRetryAfter)
	o.Budget = cmp.Or(o.Budget, defaultBudget)
	o.DeadlineField = http.CanonicalHeaderKey(o.DeadlineField)
	if o.Next == nil {
		o.Next = NewTransport()
	}
	if o.Repeatable == nil {
		o.Repeatable = repeat.Safe
	}
	c := &Client{o: o, seed: maphash.MakeSeed()}
	for i := range c.budgets {
		c.budgets[i].Most, c.budgets[i].Each = reserve, refill
		c.budgets[i].Fill()
	}
	return c, nil
}

// Counts returns what the client has done so far.
func (c *Client) Counts() Counts {
	return Counts{c.requests.Load(), c.retries.Load(), c.hedges.Load(), c.refused.Load()}
}

// CloseIdleConnections closes those of the transport below, as http.Client asks for.
func (c *Client) CloseIdleConnections() {
	if t, ok := c.o.Next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// RoundTrip sends the request, again if need be.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil { // the transport says what is wrong
		return c.o.Next.RoundTrip(r)
	}
	c.requests.Add(1)
	b := &c.budgets[maphash.String(c.seed, r.URL.Host)%uint64(len(c.budgets))].Budget
	b.Earn(c.o.Budget)
	if _, ok := r.Context().Deadline(); ok || c.o.Timeout < 0 {
		return c.send(r, b)
	}
	ctx, cancel := context.WithTimeout(r.Context(), c.o.Timeout)
	res, err := c.send(r.WithContext(ctx), b)
	return ending.With(res, err, cancel)
}

// send makes attempts until one is to be taken.
func (c *Client) send(r *http.Request, b *budget.Budget) (*http.Response, error) {
	for n := 1; ; n++ {
		res, err := c.race(r, n, b)
		if res != nil && !passing(res.StatusCode) {
			return res, err
		}
		wait, ok := c.again(r, n, outcome{res, err})
		if !ok {
			return res, err
		}
		if !b.Spend(c.o.Budget) {
			c.refused.Add(1)
			return res, err
		}
		discard(res)
		if err := sleep(r.Context(), wait); err != nil {
			return nil, err
		}
		c.retries.Add(1)
	}
}

// outcome is what became of an attempt.
type outcome struct {
	res *http.Response
	err error
}

// again reports whether another attempt may be made, and after which wait.
func (c *Client) again(r *http.Request, n int, o outcome) (wait time.Duration, ok bool) {
	if n >= c.o.Attempts || !renewable(r) || r.Context().Err() != nil {
		return 0, false
	}
	if o.err != nil && !passingError(o.err) {
		return 0, false
	}
	if !unsent(o.err) && !c.o.Repeatable(r) {
		return 0, false
	}
	bound := c.o.Backoff
	for range n - 1 {
		bound = min(2*bound, max(longestBackoff, c.o.Backoff))
	}
	wait = rand.N(bound) + 1
	if o.res != nil {
		asked := retryAfter(o.res, time.Now)
		if asked > c.o.RetryAfter {
			return 0, false
		}
		wait += asked
	}
	at, bounded := r.Context().Deadline()
	return wait, !bounded || time.Until(at) > wait
}

// sleep waits, or returns why the context ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempt sends the request once. Copies are deep, as transports may read a request's
// header for a while after they returned.
func (c *Client) attempt(ctx context.Context, r *http.Request, anew bool) (*http.Response, error) {
	if !anew && ctx == r.Context() && c.o.AttemptTimeout == 0 && c.o.DeadlineField == "" {
		return c.o.Next.RoundTrip(r)
	}
	var timer *time.Timer
	cancel := context.CancelFunc(func() {})
	late := &attemptError{c.o.AttemptTimeout}
	if late.after > 0 {
		inner, end := context.WithCancelCause(ctx)
		ctx, cancel = inner, func() { end(nil) }
		timer = time.AfterFunc(late.after, func() { end(late) })
	}
	copied := r.Clone(ctx)
	if anew && r.GetBody != nil {
		var err error
		if copied.Body, err = r.GetBody(); err != nil {
			cancel()
			return nil, fmt.Errorf("reading the request's body anew: %w", err)
		}
	}
	if at, ok := ctx.Deadline(); ok && c.o.DeadlineField != "" {
		if copied.Header == nil {
			copied.Header = http.Header{}
		}
		copied.Header[c.o.DeadlineField] = []string{strconv.FormatInt(max(time.Until(at).Milliseconds(), 0), 10)}
	}
	res, err := c.o.Next.RoundTrip(copied)
	res, err = ending.With(res, err, cancel)
	if timer != nil && !timer.Stop() && context.Cause(ctx) == late {
		discard(res)
		return nil, late
	}
	return res, err
}

// attemptError says that an attempt took too long.
type attemptError struct{ after time.Duration }

func (e *attemptError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// Timeout is for net.Error and url.Error.
func (e *attemptError) Timeout() bool { return true }

func (e *attemptError) Unwrap() error { return context.DeadlineExceeded }
