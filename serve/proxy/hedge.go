package proxy

import (
	"context"
	"net/http"
	"time"
)

// hedged reports whether a second upstream may be asked beside the first.
func (e *exchange) hedged() bool {
	if e.h.o.Hedge == 0 || e.body != nil || e.upgrade != "" || !e.mayFollow() {
		return false
	}
	switch e.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// first makes the first attempt, and another one beside it if it takes too long.
func (e *exchange) first(c choice) *attempt {
	if !e.hedged() {
		return e.send(e.r.Context(), c)
	}
	e.beside = true
	e.news.Stop() // two at a time could not tell whose they are
	p := &pair{e: e, outcomes: make(chan raced, 2)}
	p.start(0, c)
	timer := time.NewTimer(e.h.o.Hedge)
	defer timer.Stop()
	select {
	case o := <-p.outcomes:
		return o.attempt
	case <-timer.C:
	}
	if !p.second() {
		return (<-p.outcomes).attempt
	}
	o := <-p.outcomes
	if a := o.attempt; a.err != nil || passing(a.res.StatusCode) { // the other one may fare better
		a.end()
		return (<-p.outcomes).attempt
	}
	p.cancel[1-o.nth]()
	go func() { (<-p.outcomes).attempt.end() }()
	return o.attempt
}

// pair is two attempts at a time.
type pair struct {
	e        *exchange
	outcomes chan raced // has room for both
	cancel   [2]context.CancelFunc
}

type raced struct {
	*attempt
	nth int
}

// second asks another upstream, if there is one and the budget has it.
func (p *pair) second() bool {
	c, ok := p.e.choose()
	if !ok {
		return false
	}
	if !p.e.h.budget.Spend(p.e.h.o.Budget) {
		c.leave()
		p.e.h.counts.refused.Add(1)
		return false
	}
	p.e.h.counts.hedges.Add(1)
	p.start(1, c)
	return true
}

func (p *pair) start(nth int, c choice) {
	e := p.e
	e.n++
	try := time.Duration(0)
	if e.mayFollow() {
		try = max(e.h.o.TryTimeout, 0)
	}
	ctx, cancel := context.WithCancel(e.r.Context())
	p.cancel[nth] = cancel
	go func() {
		a := &attempt{choice: c, over: cancel}
		e.sendWithin(ctx, a, try)
		p.outcomes <- raced{a, nth}
	}()
}
