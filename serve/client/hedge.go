package client

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/tarehq/tare/serve/client/internal/ending"
	"github.com/tarehq/tare/serve/internal/budget"
)

// race makes the nth attempt, with another one beside it if that is to be hedged.
func (c *Client) race(r *http.Request, n int, b *budget.Budget) (*http.Response, error) {
	if c.o.Hedge == 0 || !renewable(r) || !c.o.Repeatable(r) {
		return c.attempt(r.Context(), r, n > 1)
	}
	h := &pair{c: c, r: r, over: make(chan struct{}), outcomes: make(chan raced)}
	defer close(h.over)
	h.start(0, n > 1)
	timer := time.NewTimer(c.o.Hedge)
	defer timer.Stop()
	select {
	case o := <-h.outcomes:
		return o.res, o.err
	case <-timer.C:
	}
	if !b.Spend(c.o.Budget) {
		c.refused.Add(1)
		o := <-h.outcomes
		return o.res, o.err
	}
	c.hedges.Add(1)
	h.start(1, true)
	o := <-h.outcomes
	if o.err != nil || passing(o.res.StatusCode) { // the other one may fare better
		discard(o.res)
		o = <-h.outcomes
	} else {
		h.cancel[1-o.nth]()
	}
	return o.res, o.err
}

// pair is two attempts at a time.
type pair struct {
	c        *Client
	r        *http.Request
	over     chan struct{} // closed when nobody waits for outcomes any more
	outcomes chan raced
	cancel   [2]context.CancelFunc
}

type raced struct {
	outcome
	nth int
}

func (p *pair) start(nth int, anew bool) {
	ctx, cancel := context.WithCancel(p.r.Context())
	p.cancel[nth] = cancel
	r := p.r.Clone(ctx) // now: the caller may change its own once there is an answer
	go func() {
		res, err := p.attempt(r, anew)
		res, err = ending.With(res, err, cancel)
		select {
		case p.outcomes <- raced{outcome{res, err}, nth}:
		case <-p.over:
			discard(res)
		}
	}()
}

// attempt is the client's on a goroutine of its own, where a panic of the transport would end
// the process: there it is an error.
func (p *pair) attempt(r *http.Request, anew bool) (res *http.Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = nil, fmt.Errorf("transport: panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return p.c.attempt(r.Context(), r, anew)
}
