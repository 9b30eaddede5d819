package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/client/transport"
	"github.com/tarehq/tare/serve/proxy/balance"
)

// Server is an upstream.
type Server struct {
	Address string // host:port
	Weight  int    // its share among the others, up to 100. 0: 1
	Drain   bool   // it gets no new requests
	Zone    string // where it is, see PoolOptions.Zone
	Backup  bool   // it gets requests only while no other is well, or has answered; with no zones
}

// Balance is how a pool chooses a server.
type Balance string

// The ways to choose. Each keeps to weights.
const (
	LeastRequests  Balance = "least_requests"  // of two at random the one with fewer requests in flight
	RoundRobin     Balance = "round_robin"     // in turn
	PeakEWMA       Balance = "peak_ewma"       // of two at random the one that is likely to answer earlier
	ConsistentHash Balance = "consistent_hash" // by PoolOptions.Key (Maglev)
)

// PoolOptions of a pool. The zero value needs servers.
type PoolOptions struct {
	// Servers are the upstreams at first, see [Pool.Set].
	Servers []Server
	// Found says that others find the servers: there may be none. Requests are answered
	// 503 then.
	Found bool
	// Scheme is how they are asked: http, https, or h2c, which is [UnencryptedHTTP2].
	// Empty: http.
	Scheme string
	// Zone is where the proxy is. Servers of that zone are preferred: they get all
	// requests while five of seven of them are well. If fewer are, the others get a part,
	// as large as what is missing. Empty: zones count for nothing.
	Zone string
	// SlowStart is for how long a server that is new, or well again, gets less than its
	// share: a tenth at first, and more with time. The servers that a pool begins with are
	// not new. Not with ConsistentHash. 0: none.
	SlowStart time.Duration
	// Balance is how one is chosen. Empty: LeastRequests.
	Balance Balance
	// Key is by what ConsistentHash goes; requests for which it is empty go anywhere. See
	// [ByHeader], [ByCookie] and [ByClient], which nil stands for.
	Key func(*http.Request) string
	// Eject says when an upstream is left alone, and for how long. Answers of 500 and more
	// and errors are failures. Slow is until the answer's header, of requests without a
	// body. The zero value: after three in a row, for 60 s, which doubles, up to 5 min.
	Eject breaker.Options
	// MostOut is the share of upstreams that may be left alone so. 0: 0.5.
	MostOut float64
	// Panic is a share: if fewer upstreams than that are well, health counts for nothing,
	// since the others could not do the work. 0: 0.5; negative: it always counts.
	Panic float64
	// Check has each upstream asked whether it is well. The zero value: none is.
	Check Check
}

// UnencryptedHTTP2 is the scheme of servers that speak HTTP/2 without TLS, with prior
// knowledge.
const UnencryptedHTTP2 = "h2c"

// urlScheme is what a URL has for a scheme.
func urlScheme(scheme string) string {
	if scheme == UnencryptedHTTP2 {
		return "http"
	}
	return scheme
}

const (
	published    = 3 // failures in a row
	publishedOut = 60 * time.Second
	half         = 0.5
)

// Pool is upstreams that can stand in for one another. It is safe for concurrent use.
type Pool struct {
	o     PoolOptions
	timed bool // it counts how long upstreams take
	group *breaker.Group
	set   atomic.Pointer[set]

	mu      sync.Mutex // held to change what follows
	members map[string]*member
	closed  bool
	checks  *checks                // nil: none
	warms   []*transport.Transport // they keep connections open to those that get requests
}

// set is the upstreams of one moment. It does not change.
type set struct {
	members []*member
	policy  balance.Policy
	zones   *balance.Zones // nil: they count for nothing, and there are no backups
	near    balance.Policy // of one's own zone, or of what is no backup
	far     balance.Policy // of the others
	backups bool           // the others are backups
	drained balance.Skip   // get no requests: they stand in for nobody
	slow    time.Duration
}

// member is an upstream, for as long as it is in the pool or has requests.
type member struct {
	address string
	breaker *breaker.Breaker
	target  balance.Target
	down    atomic.Bool // by the checks
	asked   atomic.Uint64
	answers [5]atomic.Uint64 // by the first digit of their status, from 1
	ramp    balance.Ramp
	stop    func()   // ends its checks
	drained bool     // guarded by the pool's mutex, as is cool
	cool    []func() // have the transports of Pool.warms keep nothing open to it
}

// NewPool returns a pool, or an error that says which option is wrong. Close ends it.
func NewPool(o PoolOptions) (*Pool, error) {
	o.Scheme = cmp.Or(o.Scheme, "http")
	o.Balance = cmp.Or(o.Balance, LeastRequests)
	o.Panic = cmp.Or(o.Panic, half)
	if o.Key == nil {
		o.Key = ByClient
	}
	switch {
	case o.Scheme != "http" && o.Scheme != "https" && o.Scheme != UnencryptedHTTP2:
		return nil, fmt.Errorf("proxy: PoolOptions.Scheme is %q; set http, https or h2c", o.Scheme)
	case o.SlowStart < 0, o.SlowStart > 0 && o.Balance == ConsistentHash:
		return nil, fmt.Errorf("proxy: PoolOptions.SlowStart is %s with Balance %s; set a time, and not with %s", o.SlowStart, o.Balance, ConsistentHash)
	case !slices.Contains([]Balance{LeastRequests, RoundRobin, PeakEWMA, ConsistentHash}, o.Balance):
		return nil, fmt.Errorf("proxy: PoolOptions.Balance is %q; set %s, %s, %s or %s", o.Balance, LeastRequests, RoundRobin, PeakEWMA, ConsistentHash)
	case !(o.Panic <= 1):
		return nil, fmt.Errorf("proxy: PoolOptions.Panic is %v; set a share up to 1", o.Panic)
	}
	if o.Eject.Consecutive == 0 {
		o.Eject.Consecutive = published
	}
	if o.Eject.Share == 0 {
		o.Eject.Share = -1
	}
	if o.Eject.Out == 0 {
		o.Eject.Out = publishedOut
	}
	eject := o.Eject
	eject.Slow = 0 // it would count how long clients take to read
	group, err := breaker.NewGroup(eject, o.MostOut)
	if err != nil {
		return nil, err
	}
	p := &Pool{o: o, timed: o.Balance == PeakEWMA || o.Eject.Slow > 0, group: group, members: map[string]*member{}}
	if p.checks, err = newChecks(o); err != nil {
		return nil, err
	}
	return p, p.Set(o.Servers)
}

// Set replaces the pool's servers. Requests in flight are not disturbed. With an error, which
// says what is wrong, the pool stays as it was.
func (p *Pool) Set(servers []Server) error {
	if err := p.check(servers); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("proxy: the pool is closed")
	}
	now := &set{slow: p.o.SlowStart}
	var weights []int
	var zones []string
	var backups []bool
	begun := p.set.Load() != nil
	stay := map[string]bool{}
	for i, s := range servers {
		m := p.members[s.Address]
		if m == nil {
			m = &member{address: s.Address, breaker: p.group.Member(s.Address)}
			p.members[s.Address] = m
			if begun {
				m.ramp.Begin(time.Now())
			}
			m.stop = p.checks.watch(m)
		}
		stay[s.Address] = true
		now.members = append(now.members, m)
		w := cmp.Or(s.Weight, 1)
		if s.Drain {
			w = 0
			now.drained.Add(i)
		}
		m.drained = s.Drain
		p.warmLocked(m)
		weights, zones, backups = append(weights, w), append(zones, s.Zone), append(backups, s.Backup)
	}
	if now.zones = balance.NewBackups(backups); now.zones != nil {
		now.backups = true
	} else if p.o.Zone != "" {
		now.zones = balance.NewZones(p.o.Zone, zones)
	}
	if now.zones != nil {
		near, far := now.zones.Weights(weights)
		now.near, now.far = p.policy(now.members, near), p.policy(now.members, far)
	}
	now.policy = p.policy(now.members, weights)
	p.set.Store(now)
	for address, m := range p.members {
		if !stay[address] {
			m.leave()
			p.group.Remove(address)
			delete(p.members, address)
		}
	}
	return nil
}

func (p *Pool) check(servers []Server) error {
	if len(servers) == 0 && !p.o.Found || len(servers) > balance.Most {
		return fmt.Errorf("proxy: %d servers; want from 1 to %d", len(servers), balance.Most)
	}
	seen := map[string]bool{}
	for _, s := range servers {
		if err := CheckAddress(s.Address); err != nil {
			return fmt.Errorf("proxy: %w", err)
		}
		if s.Weight < 0 || s.Weight > balance.MostWeight {
			return fmt.Errorf("proxy: server %s has the weight %d; want from 1 to %d", s.Address, s.Weight, balance.MostWeight)
		}
		if s.Backup && p.o.Zone != "" {
			return fmt.Errorf("proxy: server %s is a backup, which does not go with PoolOptions.Zone", s.Address)
		}
		if seen[s.Address] {
			return fmt.Errorf("proxy: server %s is there twice", s.Address)
		}
		seen[s.Address] = true
	}
	return nil
}

// CheckAddress returns what is wrong with an upstream's address; nil if it is host:port.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || strings.ContainsAny(host, "/@?# ") || notNumber != nil || n == 0 {
		return fmt.Errorf("%q is not an address: want host:port, such as 10.0.0.7:8080", address)
	}
	return nil
}

func (p *Pool) policy(members []*member, weights []int) balance.Policy {
	targets := make([]*balance.Target, len(members))
	names := make([]string, len(members))
	for i, m := range members {
		targets[i], names[i] = &m.target, m.address
	}
	switch p.o.Balance {
	case RoundRobin:
		return balance.RoundRobin(weights)
	case PeakEWMA:
		return balance.PeakEWMA(targets, weights)
	case ConsistentHash:
		return balance.Maglev(names, weights)
	}
	return balance.LeastRequests(targets, weights)
}

// Close ends the health checks and keeps no more connections open. Requests in flight are not
// disturbed.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, m := range p.members {
		m.leave()
	}
}

// leave ends what is done for a member besides its requests.
func (m *member) leave() {
	m.stop()
	m.drained = true
	m.rest()
}

// rest has no connections to a member be open before requests come.
func (m *member) rest() {
	for _, cool := range m.cool {
		cool()
	}
	m.cool = nil
}

// warm has a transport keep connections open to the members that get requests.
func (p *Pool) warm(t *transport.Transport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warms = append(p.warms, t)
	for _, m := range p.members {
		p.warmLocked(m)
	}
}

func (p *Pool) warmLocked(m *member) {
	if m.drained {
		m.rest()
		return
	}
	for _, t := range p.warms[len(m.cool):] {
		m.cool = append(m.cool, t.KeepWarm(p.o.Scheme, m.address))
	}
}

// Status is what is known of an upstream.
type Status struct {
	Address  string `json:"address"`
	Healthy  bool   `json:"healthy"`   // it gets requests
	InFlight int64  `json:"in_flight"` // requests
	Requests uint64 `json:"requests"`
	Ejected  uint64 `json:"ejected"` // how often it was left alone
	// Answers counts those to attempts by the class of their status: 1xx (a change of
	// protocol) to 5xx. The other attempts are under way, or had none.
	Answers map[string]uint64 `json:"answers"`
}

// Status returns what is known of each upstream.
func (p *Pool) Status() []Status {
	var all []Status
	for _, m := range p.set.Load().members {
		answers := map[string]uint64{}
		for i := range m.answers {
			answers[strconv.Itoa(i+1)+"xx"] = m.answers[i].Load()
		}
		all = append(all, Status{m.address, m.well(), m.target.InFlight(), m.asked.Load(), m.breaker.Openings(), answers})
	}
	return all
}

func (m *member) well() bool { return !m.down.Load() && m.breaker.State() == breaker.Closed }

// choice is an upstream for an attempt.
type choice struct {
	member  *member
	pass    breaker.Pass
	counted bool // how it goes is to be told to pass
}

// leave has the choice not be made.
func (c choice) leave() {
	if c.counted {
		c.pass.Forget()
	}
}

// choose returns an upstream that was not tried yet, and notes that it is. There is none
// if all were tried, or the others are not well and enough are.
func (s *set) choose(key uint64, tried *balance.Skip, panicking float64) (choice, bool) {
	if s.zones != nil {
		policies := [...]balance.Policy{s.far, s.near}
		if s.zones.Stay(func(i int) bool { return !s.members[i].down.Load() && s.members[i].breaker.Ready() }) {
			policies[0], policies[1] = s.near, s.far
		}
		share := panicking
		if s.backups {
			share = -1 // rather a backup than one that is not well
		}
		for _, policy := range policies {
			if c, ok := s.chooseBy(policy, key, tried, share); ok {
				return c, true
			}
		}
	}
	return s.chooseBy(s.policy, key, tried, panicking)
}

// chooseBy is choose by a policy. A ramp is no reason to fail.
func (s *set) chooseBy(policy balance.Policy, key uint64, tried *balance.Skip, panicking float64) (choice, bool) {
	skip, spared := tried, false
	for {
		i := policy.Pick(key, skip)
		switch {
		case i < 0 && spared:
			at := *s
			at.slow = 0
			return at.chooseBy(policy, key, tried, panicking)
		case i < 0:
			return choice{}, false
		case s.slow > 0 && s.members[i].well() && s.members[i].ramp.Spares(s.slow, time.Now()):
			spared = true
		default:
			if c, ok := s.take(i, panicking); ok {
				tried.Add(i)
				return c, true
			}
		}
		if skip == tried {
			other := *tried // few have one
			skip = &other
		}
		skip.Add(i)
	}
}

// take returns an upstream, if it is well or too few are.
func (s *set) take(i int, panicking float64) (choice, bool) {
	m := s.members[i]
	if !m.down.Load() {
		if pass, err := m.breaker.Ask(); err == nil {
			return choice{m, pass, true}, true
		}
	}
	if s.slow > 0 {
		m.ramp.Fell()
	}
	return choice{member: m}, s.panics(panicking)
}

// panics reports whether too few upstreams are well for their health to count.
func (s *set) panics(share float64) bool {
	well, all := 0, 0
	for i, m := range s.members {
		if !s.drained.Has(i) {
			all++
			if m.well() {
				well++
			}
		}
	}
	return float64(well) < share*float64(all)
}

// leaves reports whether one that was not tried may be chosen.
func (s *set) leaves(tried *balance.Skip, panicking float64) bool {
	other := false
	for i, m := range s.members {
		if !tried.Has(i) && !m.down.Load() && m.breaker.Ready() {
			return true
		}
		other = other || !tried.Has(i)
	}
	return other && s.panics(panicking)
}

// key is what a request goes by.
func (p *Pool) key(r *http.Request) uint64 {
	if p.o.Balance != ConsistentHash {
		return 0
	}
	if text := p.o.Key(r); text != "" {
		return balance.Hash(text)
	}
	return rand.Uint64()
}

// ByHeader returns a key that is a header field's value.
func ByHeader(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// ByCookie returns a key that is a cookie's value.
func ByCookie(name string) func(*http.Request) string {
	return func(r *http.Request) string {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
		return ""
	}
}

// ByClient is a key that is the address of the request's sender.
func ByClient(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}
