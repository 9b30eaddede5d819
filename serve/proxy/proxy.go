package proxy

import (
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
)

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
	// follow. 0: 5 s; negative: as long as the transport.
	TryTimeout time.Duration
	// Budget is the share of requests that may be sent again; a hundred may be besides,
	// until that share has been saved up again. 0: 0.2; negative: none.
	Budget float64
	// Replay is how much of a body is kept to be sent again, in bytes. 0: 64 KiB;
	// negative: nothing.
	Replay int64
	// Upgrades are the protocols that a connection may change to, in lower case. Nil:
	// websocket. What would become of others, h2c above all, no proxy can see.
	Upgrades []string
	// Fallback answers where no upstream does, or all that were tried answer 502, 503 or
	// 504. Nil: the last answer, or a status of the proxy's own.
	Fallback http.Handler
	// Transport sends the requests. Nil: [NewTransport].
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
)

// Handler passes requests on. It is safe for concurrent use.
type Handler struct {
	o       Options
	via     []string // the field of requests that no proxy has seen before
	hinted  bool     // the transport takes hints
	budget  budget
	tunnels atomic.Int64
	counts  counters
}

type counters struct{ requests, retries, refused, failed atomic.Uint64 }

// Counts are what a handler has done so far.
type Counts struct {
	Requests uint64 // that came
	Retries  uint64 // attempts after the first
	Refused  uint64 // attempts that the budget did not have
	Failed   uint64 // requests that no upstream answered
}

// New returns a handler, or an error that says which option is wrong.
func New(o Options) (*Handler, error) {
	switch {
	case o.Pool == nil:
		return nil, errors.New("proxy: Options.Pool is not set")
	case o.Attempts < 0 || o.Attempts > 100:
		return nil, fmt.Errorf("proxy: Options.Attempts is %d; set from 1 to 100, or 0 for %d", o.Attempts, defaultAttempts)
	case !(o.Budget <= 1):
		return nil, fmt.Errorf("proxy: Options.Budget is %v; set a share up to 1, or 0 for %v", o.Budget, defaultBudget)
	case strings.ContainsFunc(o.Name, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`,;()"\`, c) }):
		return nil, fmt.Errorf("proxy: Options.Name is %q; set a word such as edge-1", o.Name)
	}
	o.Attempts = orDefault(o.Attempts, defaultAttempts)
	o.TryTimeout = orDefault(o.TryTimeout, defaultTryTimeout)
	o.Budget = orDefault(o.Budget, defaultBudget)
	o.Replay = orDefault(o.Replay, defaultReplay)
	if o.Name == "" {
		o.Name = fmt.Sprintf("tare-%08x", rand.Uint32())
	}
	if o.Upgrades == nil {
		o.Upgrades = []string{"websocket"}
	}
	if o.Transport == nil {
		o.Transport = NewTransport(0)
	}
	h := &Handler{o: o, via: []string{"1.1 " + o.Name}}
	_, ours := o.Transport.(*transport.Transport)
	h.hinted = ours && o.Pool.o.Scheme == "http"
	h.budget.left.Store(reserve)
	return h, nil
}

func orDefault[T comparable](v, otherwise T) T {
	if v == *new(T) {
		return otherwise
	}
	return v
}

// NewTransport returns a transport for proxies: package transport, and for upstreams with
// TLS client.NewTransport, but that bodies stay as they are, as many connections are opened
// as there are requests, and no proxy of the environment is used. An answer's header has
// that long to come. 0: 60 s.
func NewTransport(header time.Duration) *transport.Transport {
	header = orDefault(header, headerTimeout)
	return &transport.Transport{Options: transport.Options{HeaderTimeout: header, Idle: idleConns, Other: newSecure(header)}}
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
	return Counts{h.counts.requests.Load(), h.counts.retries.Load(), h.counts.refused.Load(), h.counts.failed.Load()}
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
	case h.seen(r.Header["Via"]):
		refuse(w, http.StatusLoopDetected)
		return
	}
	h.budget.earn(h.o.Budget)
	e := newExchange(h, w, r)
	defer e.close()
	e.run()
}

// refuse answers with a status and its name.
func refuse(w http.ResponseWriter, status int) { http.Error(w, http.StatusText(status), status) }

// reserve is what a budget holds at most, in thousandths of an attempt.
const reserve = 100_000

// budget is how many attempts beyond the first there may be.
type budget struct{ left atomic.Int64 }

func (b *budget) earn(share float64) {
	if share > 0 && b.left.Load() < reserve {
		b.left.Add(int64(share * 1000))
	}
}

func (b *budget) spend(share float64) bool {
	for share > 0 {
		left := b.left.Load()
		if left < 1000 {
			return false
		}
		if b.left.CompareAndSwap(left, left-1000) {
			return true
		}
	}
	return false
}
