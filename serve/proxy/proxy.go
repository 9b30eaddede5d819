package proxy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/client"
	"github.com/tarehq/tare/serve/client/transport"
	"github.com/tarehq/tare/serve/internal/budget"
	"github.com/tarehq/tare/serve/proxy/internal/fields"
)

// Served is told, for a log, which upstream was asked last, as the n-th attempt, and how long
// that took until all of its answer had passed. Not of requests that none was asked.
type Served func(r *http.Request, upstream string, n int, took time.Duration)

// Options of a handler. The zero value needs a pool.
type Options struct {
	// Pool is where requests go. It must be set.
	Pool *Pool
	// Name is what the proxy calls itself in Via, by which it finds loops: no other proxy
	// on a request's way may have it. Empty: tare- and a random number.
	Name string
	// Trusted are the proxies whose X-Forwarded fields and Forwarded are passed on, with
	// this proxy's added; those of others are dropped. None: nobody is.
	Trusted []netip.Prefix
	// Forwarded has the field of RFC 7239 written as well as X-Forwarded-For, -Host and
	// -Proto.
	Forwarded bool
	// Host is what upstreams are asked for. Empty: what the client asked for.
	Host string

	// Attempts is to how many upstreams a request is sent at most. 0: 3.
	Attempts int
	// TryTimeout is how long an attempt waits for the answer's header if another one may
	// follow, once it has a connection of those that the transport bounds. 0: 5 s; negative: as
	// long as the transport, whose own time it does not exceed.
	TryTimeout time.Duration
	// Pause is how long an answer may pause amid its body, streams too, before its upstream has
	// failed and the client sees the answer break off. 0: as long as the client waits.
	Pause time.Duration
	// Budget is the share of requests that may be sent again; a hundred may be besides,
	// until that share has been saved up again. 0: 0.2; negative: none.
	Budget float64
	// Hedge has a second upstream asked if the first has not answered after this time; the
	// first good answer is taken, and the other attempt ended. It is for GET, HEAD, OPTIONS
	// and TRACE without a body, and takes from the same budget. Informational answers do
	// not pass then. 0: none. A sensible value is what nineteen of twenty requests take.
	Hedge time.Duration
	// Replay is how much of a body is kept to be sent again, in bytes. 0: 64 KiB;
	// negative: nothing.
	Replay int64
	// Upgrades are the protocols that a connection may change to, in lower case. Nil:
	// websocket. What would become of others, h2c above all, no proxy can see.
	Upgrades []string
	// Fallback answers where no upstream does, or all that were tried answer 502, 503 or
	// 504. Nil: the last answer, or a status of the proxy's own.
	Fallback http.Handler
	// Served is told which upstream was asked. Nil: nobody is.
	Served Served
	// Transport sends the requests. Nil: [NewTransport], or [NewUnencryptedHTTP2] for a pool
	// of the scheme h2c. That of NewTransport can bound the connections of each upstream, and the
	// streams of HTTP/2; for h2c it has UnencryptedHTTP2, and the other one as its Other. A request
	// that gets none is answered 503, and what it has waited is not the upstream's failure.
	// Connections that it is to keep warm are opened to the pool's servers as these come and go,
	// until the pool is closed.
	Transport http.RoundTripper
}

const (
	defaultAttempts   = 3
	defaultTryTimeout = 5 * time.Second
	defaultBudget     = 0.2
	defaultReplay     = 64 << 10

	// headerTimeout is how long the last attempt waits for an answer's header once the
	// request is sent, as in nginx.
	headerTimeout = 60 * time.Second
	idleConns     = 512 // of an upstream
	reserve       = 100 // attempts that a budget holds at most
)

// Handler passes requests on. It is safe for concurrent use.
type Handler struct {
	o       Options
	fields  fields.Proxy
	hinted  bool // the transport takes hints
	queues  bool // requests may wait in it, and it says when they do no more
	budget  budget.Budget
	tunnels atomic.Int64
	counts  counters
}

type counters struct{ requests, retries, hedges, refused, failed, busy atomic.Uint64 }

// Counts are what a handler has done so far.
type Counts struct {
	Requests uint64 `json:"requests"`    // that came
	Retries  uint64 `json:"retries"`     // attempts after the first
	Hedges   uint64 `json:"hedges"`      // attempts beside another one
	Refused  uint64 `json:"over_budget"` // attempts that the budget did not have
	Failed   uint64 `json:"unanswered"`  // requests that no upstream answered
	Busy     uint64 `json:"busy"`        // attempts for which no connection was free
}

// New returns a handler, or an error that says which option is wrong.
func New(o Options) (*Handler, error) {
	switch {
	case o.Pool == nil:
		return nil, errors.New("proxy: Options.Pool is not set")
	case o.Attempts < 0 || o.Attempts > 100:
		return nil, fmt.Errorf("proxy: Options.Attempts is %d; set from 1 to 100, or 0 for %d", o.Attempts, defaultAttempts)
	case o.Hedge < 0:
		return nil, fmt.Errorf("proxy: Options.Hedge is %s; set a time, or 0 for none", o.Hedge)
	case !(o.Budget <= 1):
		return nil, fmt.Errorf("proxy: Options.Budget is %v; set a share up to 1, or 0 for %v", o.Budget, defaultBudget)
	case strings.ContainsFunc(o.Name, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`,;()"\`, c) }):
		return nil, fmt.Errorf("proxy: Options.Name is %q; set a word such as edge-1", o.Name)
	}
	o.Attempts = cmp.Or(o.Attempts, defaultAttempts)
	o.TryTimeout = cmp.Or(o.TryTimeout, defaultTryTimeout)
	o.Budget = cmp.Or(o.Budget, defaultBudget)
	o.Replay = cmp.Or(o.Replay, defaultReplay)
	if o.Name == "" {
		o.Name = fmt.Sprintf("tare-%08x", rand.Uint32())
	}
	if o.Upgrades == nil {
		o.Upgrades = []string{"websocket"}
	}
	if o.Transport == nil {
		o.Transport = NewTransport(0)
		if o.Pool.o.Scheme == UnencryptedHTTP2 {
			o.Transport = NewUnencryptedHTTP2(0)
		}
	}
	ours, is := o.Transport.(*transport.Transport)
	if is && ours.HeaderTimeout > 0 {
		o.TryTimeout = min(o.TryTimeout, ours.HeaderTimeout)
	}
	h := &Handler{o: o, fields: fields.Proxy{Name: o.Name, Trusted: o.Trusted, Forwarded: o.Forwarded, Upgrades: o.Upgrades}}
	h.fields.Complete()
	h.hinted = is && o.Pool.o.Scheme == "http" && !ours.UnencryptedHTTP2
	h.queues = is && ours.Conns > 0
	if is && ours.Warm > 0 {
		o.Pool.warm(ours)
	}
	h.budget.Most = reserve
	h.budget.Fill()
	return h, nil
}

// NewTransport returns a transport for proxies: package transport, and for upstreams by HTTP/2
// client.NewTransport, but that bodies stay as they are, as many connections are opened
// as there are requests, and no proxy of the environment is used. An answer's header has
// that long to come. 0: 60 s.
func NewTransport(header time.Duration) *transport.Transport {
	header = cmp.Or(header, headerTimeout)
	return &transport.Transport{Options: transport.Options{HeaderTimeout: header, Idle: idleConns, TLS: new(tls.Config), Other: newSecure(header)}}
}

// NewUnencryptedHTTP2 returns a transport for upstreams that speak HTTP/2 without TLS, as
// many that speak gRPC do. It is the standard library's. An answer's header has that long
// to come, counted from the end of the request. 0: 60 s.
func NewUnencryptedHTTP2(header time.Duration) *http.Transport {
	t := newSecure(cmp.Or(header, headerTimeout))
	t.Protocols = new(http.Protocols)
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

func newSecure(header time.Duration) *http.Transport {
	t := client.NewTransport()
	t.Proxy = nil
	t.DisableCompression = true
	t.MaxConnsPerHost = 0
	t.MaxIdleConns = 0
	t.MaxIdleConnsPerHost = idleConns
	t.ResponseHeaderTimeout = header
	return t
}

// Counts returns what the handler has done so far.
func (h *Handler) Counts() Counts {
	c := &h.counts
	return Counts{c.requests.Load(), c.retries.Load(), c.hedges.Load(), c.refused.Load(), c.failed.Load(), c.busy.Load()}
}

// Tunnels returns how many connections have been upgraded and not ended. No server knows
// of them any more: who ends the process waits for them.
func (h *Handler) Tunnels() int { return int(h.tunnels.Load()) }

// ServeHTTP passes the request on and answers it. It panics with http.ErrAbortHandler
// where an answer that was begun broke off, as net/http has it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.counts.requests.Add(1)
	switch {
	case r.Method == http.MethodConnect:
		refuse(w, http.StatusNotImplemented)
		return
	case r.URL.Opaque != "": // neither a path nor *
		refuse(w, http.StatusBadRequest)
		return
	case h.fields.Seen(r.Header["Via"]):
		refuse(w, http.StatusLoopDetected)
		return
	case fields.Hops(r) == 0 && r.Method == http.MethodTrace: // this proxy is asked, which echoes nothing
		refuse(w, http.StatusNotImplemented)
		return
	case fields.Hops(r) == 0:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h.budget.Earn(h.o.Budget)
	e := newExchange(h, w, r)
	defer e.close()
	e.run()
}

// refuse answers with a status and its name.
func refuse(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }
