package ratelimit

import (
	"fmt"
	"time"
)

// Law says how many requests a key may make. [GCRA] and [Window] are there.
type Law interface {
	fmt.Stringer
	// prepare returns the law as requests are held to it, or an error that says what is
	// wrong with it.
	prepare() (law, error)
}

// law is a Law that was checked.
type law interface {
	// take lets n requests pass at a time in nanoseconds, or none.
	take(s *slot, now int64, n uint32) Result
	quota() (n int, per time.Duration)
}

// Result is what became of a request.
type Result struct {
	Allowed   bool
	Remaining int           // requests that could follow at once
	Retry     time.Duration // if not allowed: when it will be; negative: never, as it asks for more than the limit
	Reset     time.Duration // until all of the limit is there again
}

// GCRA is the generic cell rate algorithm of ITU-T I.371: requests at Rate, and Burst of
// them at once after a rest. It smooths: a client that goes on asking is served one
// request at a time, evenly spaced.
type GCRA struct {
	Rate  int           // requests
	Per   time.Duration // in this time; 0: a second
	Burst int           // at once; 0: Rate
}

func (g GCRA) norm() GCRA {
	if g.Per == 0 {
		g.Per = time.Second
	}
	if g.Burst == 0 {
		g.Burst = g.Rate
	}
	return g
}

func (g GCRA) String() string {
	g = g.norm()
	return fmt.Sprintf("%d requests in %s, %d at once", g.Rate, g.Per, g.Burst)
}

func (g GCRA) prepare() (law, error) {
	if err := checkQuota(g.Rate, g.norm().Per, g.Burst); err != nil {
		return nil, err
	}
	g = g.norm()
	interval := max(int64(g.Per)/int64(g.Rate), 1)
	return &gcra{interval, interval * int64(g.Burst), g.Burst}, nil
}

// gcra is what GCRA needs of itself at each request.
type gcra struct {
	interval  int64 // ns in which one request comes back
	tolerance int64 // in which all of them do
	burst     int
}

func (g *gcra) quota() (int, time.Duration) { return g.burst, time.Duration(g.tolerance) }

func (g *gcra) take(s *slot, now int64, n uint32) Result {
	interval, tolerance := g.interval, g.tolerance
	never := int64(n) > int64(g.burst)         // and the product below may be more than an int64
	at := max(s.rest, now) + interval*int64(n) // the theoretical arrival time of the next
	if never || at-now > tolerance {
		r := Result{Retry: time.Duration(at - now - tolerance), Reset: time.Duration(max(s.rest-now, 0))}
		r.Remaining = int((tolerance - int64(r.Reset)) / interval)
		if never {
			r.Retry = -1
		}
		return r
	}
	s.rest = at
	return Result{Allowed: true, Remaining: int((tolerance - (at - now)) / interval), Reset: time.Duration(at - now)}
}

// Window counts requests in a window that slides: those of this window, and of the one
// before the share that is still within one length of now. The estimate is exact if the
// requests of the window before were spread evenly; at worst a client makes twice the
// limit in a window's length.
type Window struct {
	Limit  int           // requests
	Length time.Duration // in any time of this length; 0: a minute
}

func (w Window) norm() Window {
	if w.Length == 0 {
		w.Length = time.Minute
	}
	return w
}

func (w Window) String() string {
	w = w.norm()
	return fmt.Sprintf("%d requests in any %s", w.Limit, w.Length)
}

func (w Window) prepare() (law, error) {
	w = w.norm()
	return w, checkQuota(w.Limit, w.Length, 0)
}

func (w Window) quota() (int, time.Duration) { return w.Limit, w.Length }

// take keeps in slot.more the counts of the window before (high half) and of that which
// slot.rest ends two lengths after its start. A request that came in an older one counts as of
// the start of this: it must not take back what others have used.
func (w Window) take(s *slot, now int64, n uint32) Result {
	length := int64(w.Length)
	now = max(now, s.rest-2*length)
	start := now - now%length
	before, current := uint32(s.more>>32), uint32(s.more)
	if s.rest != start+2*length { // of the window before; if of an older one, the slot was at rest
		before, current = current, 0
		if s.rest == 0 {
			before = 0
		}
	}
	into := now - start
	used := float64(current) + float64(before)*float64(length-into)/float64(length)
	r := Result{Reset: time.Duration(start + 2*length - now)}
	if used+float64(n) > float64(w.Limit) {
		r.Retry = w.retry(before, current, n, into)
		r.Remaining = max(int(float64(w.Limit)-used), 0)
		return r
	}
	current += n
	s.rest, s.more = start+2*length, uint64(before)<<32|uint64(current)
	r.Allowed, r.Remaining = true, int(float64(w.Limit)-used)-int(n)
	return r
}

// retry returns when n requests will be allowed, if no others come.
func (w Window) retry(before, current, n uint32, into int64) time.Duration {
	room := float64(w.Limit) - float64(n)
	switch length := float64(w.Length); {
	case room < 0:
		return -1
	case float64(current) <= room: // within this window, as the one before slides out
		return time.Duration(length*(1-(room-float64(current))/float64(before))) - time.Duration(into) + 1
	default: // in the next one, as this slides out
		return time.Duration(length*(2-room/float64(current))) - time.Duration(into) + 1
	}
}

func checkQuota(n int, per time.Duration, burst int) error {
	switch {
	case n < 1 || n > 1<<30:
		return fmt.Errorf("a limit of %d requests; set from 1 to 2³⁰", n)
	case per < time.Microsecond || per > 24*366*time.Hour:
		return fmt.Errorf("a limit over %s; set from 1 µs to a year", per)
	case burst < 0 || burst > 1<<30:
		return fmt.Errorf("a burst of %d requests; set from 1 to 2³⁰", burst)
	case burst > 0 && per.Hours()/float64(n)*float64(burst) > 100*366*24:
		return fmt.Errorf("a burst of %d requests, which takes a century to come back", burst)
	}
	return nil
}
