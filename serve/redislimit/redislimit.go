package redislimit

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/internal/safelog"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
)

// Options of a limiter. Redis and Law must be set.
type Options struct {
	// Redis says where it is; at least InitAddress. The limiter makes connections of its
	// own, as other commands must not keep it waiting. What is zero is set for that.
	Redis rueidis.ClientOption
	Law   ratelimit.Law
	// Key says whose requests count together. Nil: the client's address as clientaddr
	// finds it, of IPv6 the first 64 bits.
	Key func(*http.Request) string
	// Prefix of keys in Redis tells limits apart. Empty: "limit:".
	Prefix string
	// Batch is how many requests of a key are taken from Redis at once, half of the burst
	// or of the window's limit at most. 0: 1, which is exact.
	Batch int
	// Processes share the limit: one divided by it is this one's share while Redis is
	// away. 0: 1.
	Processes int
	// Keys is how many clients are remembered here. 0: 65,536.
	Keys int
	// Timeout is how long a request waits for Redis, and with Batch as long again for answers to
	// others. 0: 50 ms.
	Timeout time.Duration
	// Announce has answers say what is left, as of package ratelimit. It allocates.
	Announce bool
	// Refuse answers what is refused; Retry-After is set. Nil: a plain 429.
	Refuse http.Handler
	// Log records when Redis is away and when it is back. Nil: slog's default.
	Log *slog.Logger
}

const (
	defaultKeys    = 1 << 16
	defaultTimeout = 50 * time.Millisecond
	mostInFlight   = 1024 // round trips at a time: more would wait for room in the client, however long
)

// Limiter is a rate limit. It is safe for concurrent use, and may be part of many chains.
type Limiter struct {
	o      Options
	law    law
	policy ratelimit.Policy
	redis  *redis
	guard  *breaker.Breaker
	local  *ratelimit.Limiter
	seed   maphash.Seed
	table  *table
	epoch  time.Time

	inFlight                               atomic.Int64
	failure                                atomic.Value // the last error's text
	refused, trips, failures, decidedAlone atomic.Uint64
}

// New returns a limiter, or an error that says which option is wrong. It waits 2 s
// at most for Redis to be there, and connects later if it is not.
func New(o Options) (*Limiter, error) {
	law, err := complete(&o)
	if err != nil {
		return nil, fmt.Errorf("redislimit: %w", err)
	}
	local, err := ratelimit.New(ratelimit.Options{Law: share(o.Law, o.Processes), Key: ratelimit.ByString(o.Key), Keys: o.Keys})
	if err != nil {
		return nil, fmt.Errorf("redislimit: %w", err)
	}
	policy, err := ratelimit.NewPolicy(o.Law)
	if err != nil {
		return nil, fmt.Errorf("redislimit: %w", err)
	}
	l := &Limiter{o: o, law: law, policy: policy, local: local, seed: maphash.MakeSeed(), table: newTable(o.Keys), epoch: time.Now()}
	l.guard, err = breaker.New("redis", breaker.Options{Consecutive: 3, Out: 500 * time.Millisecond, MostOut: 5 * time.Second, Changed: l.logChange})
	if err != nil {
		return nil, fmt.Errorf("redislimit: %w", err)
	}
	l.redis = connect(o)
	return l, nil
}

// logChange logs whether Redis decides.
func (l *Limiter) logChange(_ string, to breaker.State) {
	switch to {
	case breaker.Open:
		l.o.Log.Warn("redis is away: this process limits by its share", "error", l.failure.Load())
	case breaker.Closed:
		l.o.Log.Info("redis is back")
	}
}

// complete fills in the defaults, and returns the law as its script takes it.
func complete(o *Options) (law, error) {
	if len(o.Redis.InitAddress) == 0 {
		return law{}, errors.New("Options.Redis.InitAddress is not set: where is Redis?")
	}
	if err := checkAddresses(o.Redis); err != nil {
		return law{}, err
	}
	if o.Batch == 0 {
		o.Batch = 1
	}
	l, err := forScript(o.Law)
	if err != nil {
		return law{}, err
	}
	if o.Batch < 0 || o.Batch > max(l.most/2, 1) {
		return law{}, fmt.Errorf("Options.Batch is %d; set from 1 to half of the %d at once", o.Batch, l.most)
	}
	l.batch = o.Batch
	if o.Processes < 0 || o.Keys < 0 || o.Timeout < 0 {
		return law{}, fmt.Errorf("Options has a negative number: Processes %d, Keys %d, Timeout %s", o.Processes, o.Keys, o.Timeout)
	}
	o.Processes = max(o.Processes, 1)
	if o.Key == nil {
		o.Key = keyOfAddress
	}
	if o.Prefix == "" {
		o.Prefix = "limit:"
	}
	if o.Keys == 0 {
		o.Keys = defaultKeys
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = safelog.New(o.Log)
	if o.Refuse == nil {
		o.Refuse = http.HandlerFunc(refuse)
	}
	return l, nil
}

// checkAddresses refuses what is not an address: it would look as if Redis were away.
func checkAddresses(o rueidis.ClientOption) error {
	if o.DialCtxFn != nil {
		return nil // it knows what they mean
	}
	for _, addr := range o.InitAddress {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return fmt.Errorf("Options.Redis.InitAddress has %q: set host:port, as in 127.0.0.1:6379; rueidis.ParseURL takes a URL", addr)
		}
	}
	return nil
}

// forScript returns what a script is told, but for the batch.
func forScript(of ratelimit.Law) (law, error) {
	var l law
	var per time.Duration
	var rate int
	switch of := of.(type) {
	case nil:
		return law{}, errors.New("Options.Law is not set: how many requests may a client make?")
	case ratelimit.GCRA:
		rate, per = of.Rate, cmp.Or(of.Per, time.Second)
		l.script, l.most = rueidis.NewLuaScript(ofGCRA), cmp.Or(of.Burst, of.Rate)
	case ratelimit.Window:
		rate, per = of.Limit, cmp.Or(of.Length, time.Minute)
		l.script, l.most, l.unit = rueidis.NewLuaScript(ofWindow), of.Limit, per.Truncate(time.Microsecond)
	}
	if rate < 1 || per/time.Duration(rate) < time.Microsecond {
		return law{}, fmt.Errorf("a limit of %d requests in %s; set from one to a million a second", rate, per)
	}
	if l.most < 1 {
		return law{}, fmt.Errorf("a burst of %d requests; set from 1", l.most)
	}
	l.interval = per / time.Duration(rate)
	if l.unit == 0 {
		l.unit = l.interval
	}
	return l, nil
}

// share returns one process's share of the law.
func share(of ratelimit.Law, processes int) ratelimit.Law {
	switch law := of.(type) {
	case ratelimit.GCRA:
		law.Burst = max(cmp.Or(law.Burst, law.Rate)/processes, 1)
		law.Per = cmp.Or(law.Per, time.Second) * time.Duration(processes)
		return law
	case ratelimit.Window:
		if law.Limit < processes { // one request in a longer time
			law.Length = cmp.Or(law.Length, time.Minute) * time.Duration(processes) / time.Duration(law.Limit)
		}
		law.Limit = max(law.Limit/processes, 1)
		return law
	}
	return of
}

func keyOfAddress(r *http.Request) string {
	addr := clientaddr.From(r)
	whole := addr.As16()
	if addr.Is6() {
		return string(whole[:8])
	}
	return string(whole[:])
}

// Close gives up the connections. The limit goes on in memory.
func (l *Limiter) Close() { l.redis.close() }

// Counts are what a limiter has done so far.
type Counts struct {
	Refused  uint64 // requests
	Trips    uint64 // round trips to Redis
	Failures uint64 // of these
	Local    uint64 // requests that the limit in memory decided, as Redis was away
}

// Counts returns what the limiter has done so far.
func (l *Limiter) Counts() Counts {
	return Counts{l.refused.Load(), l.trips.Load(), l.failures.Load(), l.decidedAlone.Load()}
}

// Middleware limits what reaches next.
func (l *Limiter) Middleware(next http.Handler) http.Handler { return &handler{l, next} }

type handler struct {
	l    *Limiter
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "ratelimit", Roles: []string{"limit"}, Rules: []chain.Rule{
		chain.Before("cache", "answers from it would be free of the limit"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	res := h.l.Take(r)
	if h.l.o.Announce {
		h.l.policy.Announce(w.Header(), res)
	}
	if res.Allowed {
		h.next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(max(res.Retry.Seconds(), 1)), 'f', 0, 64))
	h.l.o.Refuse.ServeHTTP(w, r)
}

// Take has a request counted, as the middleware does, and returns what became of it. What
// remains is what Redis said when it was last asked, less what was given out here since.
func (l *Limiter) Take(r *http.Request) ratelimit.Result {
	local := l.local.Take(r, 1)
	res, alone := l.take(l.o.Key(r))
	if alone {
		l.decidedAlone.Add(1)
		res = local
	}
	if !res.Allowed {
		l.refused.Add(1)
	}
	return res
}

// take asks what is known here, and Redis if need be. alone says that Redis is away.
func (l *Limiter) take(key string) (res ratelimit.Result, alone bool) {
	hash := maphash.String(l.seed, key)
	begun := time.Since(l.epoch)
	for {
		now := time.Since(l.epoch)
		if now-begun > l.o.Timeout { // others had what was asked for meanwhile
			return res, true
		}
		d := l.table.decide(hash, now, l.o.Batch > 1)
		switch d.kind {
		case granted, denied:
			return d.said.result(now), false
		case wait: // another request of the key is asking
			<-d.flight.over
			if d.flight.failed {
				return res, true
			}
			continue
		}
		return l.fly(key, hash, d.flight)
	}
}

// fly asks Redis, and has those who wait for the flight go on, also if that panics.
func (l *Limiter) fly(key string, hash uint64, f *flight) (res ratelimit.Result, alone bool) {
	landed := false
	defer func() {
		if !landed {
			l.table.fail(hash, f)
		}
	}()
	g, err := l.ask(key)
	if err != nil {
		return res, true
	}
	now := time.Since(l.epoch)
	said := g.lease(now, l.law)
	l.table.learn(hash, f, said)
	landed = true
	return said.result(now), false
}

var errBusy = errors.New("too many round trips at a time")

// ask has Redis decide, unless it is away.
func (l *Limiter) ask(key string) (grant, error) {
	pass, err := l.guard.Ask()
	if err != nil {
		return grant{}, err
	}
	defer l.inFlight.Add(-1) // also if a function of Options.Redis panics
	if l.inFlight.Add(1) > mostInFlight {
		pass.Forget()
		return grant{}, errBusy
	}
	l.trips.Add(1)
	g, err := l.redis.take(key, l.law)
	if err != nil {
		l.failures.Add(1)
		l.failure.Store(err.Error())
	}
	pass.Done(err != nil)
	return g, err
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
}
