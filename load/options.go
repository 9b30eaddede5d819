package load

import (
	"crypto/tls"
	"time"

	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
)

// Options say what load to offer. The zero value of every field but Targets
// works.
type Options struct {
	// Targets are what is asked for; at least one. All share one scheme and,
	// unless Unix is set, may differ in host.
	Targets []Target
	// Feeder fills {{.name}} in the targets' URLs, headers and bodies, one
	// record a request, in order and from the start again at the end. Nil
	// leaves the targets as they are.
	Feeder *Feeder

	// Schedule gives the intended starts (open loop). Nil is the closed loop:
	// each connection sends its next request when the answer has come.
	Schedule *pace.Schedule
	// Connections is the number kept busy (closed loop; 0 means 64) or the
	// most that may be open (open loop; 0 means 4096).
	Connections int
	// Streams is the number of requests in flight on one HTTP/2 or HTTP/3 connection: kept
	// busy (closed loop; 0 means 1) or at most (open loop; 0 means 100).
	Streams int
	// Pipeline is how many requests a connection sends at once, to read as many
	// answers before it sends again (closed loop, epoll engine, one host). Each
	// counts from when all were sent, so those behind wait for those before. 0
	// and 1: each request waits for the answer before.
	Pipeline int
	// MaxInFlight bounds the requests in flight or waiting for a connection (open loop). What
	// does not fit at its intended start is counted as dropped. 0: no bound;
	// a request that finds no free connection then waits, and its wait counts
	// in its response time.
	MaxInFlight int
	// Duration bounds the measured part; 0 means 10 s unless Requests is set.
	// It is not needed when Schedule ends by itself.
	Duration time.Duration
	// Requests bounds the number of measured requests; 0: no bound.
	Requests int64
	// WarmUp is the part before the measured one; what happens in it is
	// counted in Result.WarmUp only. In the open loop it keeps the rate with
	// which Schedule begins.
	WarmUp time.Duration
	// Timeout bounds one request from its start, connecting included; 0 means
	// 30 s, negative none.
	Timeout time.Duration
	// NewConnections is the share, 0 to 1, of requests sent on a connection of
	// their own, closed after the answer. In HTTP/2 each is the only stream of its.
	NewConnections float64

	// Unix is the path of a Unix socket to connect to instead of the host.
	Unix string
	// Proxy is the URL of an HTTP proxy, as http://name:password@host:port; "" is none. It opens
	// tunnels by CONNECT for https and HTTP/2, whose time counts in Result.Connect. Else requests
	// name the whole URL, and the hosts of all targets share the connections to it.
	Proxy string
	// Protocol picks the engine's protocol; the zero value is HTTP/1.1.
	Protocol Protocol
	// TLS configures https targets; nil verifies as usual.
	TLS *tls.Config
	// NoResume makes every TLS handshake a full one.
	NoResume bool

	// Engine picks how requests are driven; the zero value picks the best for
	// the targets and this system.
	Engine Engine
	// Threads is the number of event loops (epoll engine), at most one per
	// connection; 0 means 1 per usable CPU, in the open loop no more than 1 for
	// each 25,000 requests a second.
	Threads int
	// CPUs pins loop i to CPU CPUs[i mod len]. Empty: not pinned.
	CPUs []int
	// Spin is how long before an intended start a loop polls instead of
	// sleeping. 0 means 60 µs while the loops leave a CPU free, for they would
	// take it from the server, else none. Negative never polls.
	Spin time.Duration
	// MaxAnswer bounds the bytes of one answer held or read; 0 means 64 MiB.
	// A longer answer is malformed.
	MaxAnswer int64

	// Slice is the period of Result.Series; 0 means 1 s.
	Slice time.Duration
	// Progress, if set, is called about four times a second from one
	// goroutine while the load runs.
	Progress func(Snapshot)
	// Sealed, if set, is called with each slice of Result.Series in which anything ended, in
	// order, and its response times, which it may not keep. Keep it short, too.
	Sealed func(Slice, *hist.Hist)
	// Mark, if set, is called from one goroutine when the measured part begins
	// (true) and as soon as its last request has ended, before connections are
	// closed (false). The load goes on meanwhile: keep it short.
	Mark func(begin bool)
	// Seed fixes every random choice (Poisson arrivals, weights); 0 means 1.
	Seed uint64
}

// Target is a request's blueprint.
type Target struct {
	Method string  // "" means GET
	URL    string  // scheme (none: http), host (":8080" is localhost:8080), path, query; may hold {{.name}}
	Header []Field // sent in this order; Host, User-Agent may be overridden here
	Body   []byte  // may hold {{.name}}; not to be written to before Run has returned
	Weight int     // share among the targets; 0 means 1
	Verify Verify
	Source string // where the target was read, such as "urls.txt:3": errors begin with it; "" is nowhere
}

// Field is one header field.
type Field struct{ Name, Value string }

// Verify says what makes an answer correct. The zero value accepts every
// well-formed answer.
type Verify struct {
	Status   int     // 0: any
	Header   []Field // each must be present with this value
	Contains string  // body substring; "": any
	Length   *int64  // body length in bytes; nil: any
	SHA256   string  // hex digest of the body; "": any
}

// Protocol is an HTTP version.
type Protocol string

// The protocols.
const (
	HTTP1 Protocol = ""   // HTTP/1.1
	HTTP2 Protocol = "h2" // HTTP/2: by ALPN on https, prior knowledge on http
	HTTP3 Protocol = "h3" // HTTP/3: https only
)

// Engine is a way to drive requests.
type Engine string

// The engines.
const (
	Auto       Engine = ""          // epoll where it can, else goroutines
	Epoll      Engine = "epoll"     // event loops on locked threads; HTTP/1.1 and HTTP/2, by TLS too, but no tunnels through a proxy, Linux
	Goroutines Engine = "goroutine" // a goroutine a connection or stream; every protocol and system
)
