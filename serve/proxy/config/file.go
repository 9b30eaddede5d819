package config

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/proxy"
)

// File is what a file says.
type File struct {
	Listen    []Listener
	Name      string         // in Via; empty: a random one
	Trusted   []netip.Prefix // proxies before this one
	Forwarded bool           // the field of RFC 7239 is written
	Grace     time.Duration  // how long requests may go on once the program is to end
	AccessLog string         // a file; empty: none
	Admin     string         // a Unix socket; empty: none
	Upstreams map[string]Upstream
	Routes    []Route
}

// Listener is where requests come from; with a certificate by TLS.
type Listener struct{ Address, Certificate, Key string }

// Upstream is a pool and how requests are passed on to it.
type Upstream struct {
	Servers                            []proxy.Server
	Scheme                             string
	Balance                            proxy.Balance
	KeyHeader, KeyCookie               string
	Host                               string
	Failures                           int
	Out                                time.Duration
	MostOut, Panic                     float64
	Check                              proxy.Check
	Attempts                           int
	TryTimeout, Timeout                time.Duration
	Budget                             float64
	FallbackStatus                     int
	FallbackType, FallbackBody         string
	noBudget, noPanic, noEject, noWait bool // were set to nothing
}

// Route says what becomes of requests. The first of the routes with one host, path and
// method whose fields are there is taken.
type Route struct {
	Host, Path string
	Methods    []string
	Header     map[string]string // these must be there; "*" stands for any value
	Cookie     map[string]string
	Strip      string // is taken off the path
	Split      []Share
	Location   string // where to redirect, if there is no upstream
	Status     int
}

// Share of the requests, by weight, that an upstream gets.
type Share struct {
	Upstream string
	Weight   int
}

// Parse reads a file of JSON. The error is [Problems].
func Parse(data []byte) (*File, error) {
	r := &reader{}
	top := r.read(data)
	if !top.is {
		return nil, r.problems
	}
	f := r.file(top)
	if len(r.problems) == 0 {
		if _, err := f.router(func(Route) http.Handler { return http.NotFoundHandler() }); err != nil {
			r.problems = append(r.problems, *err)
		}
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return f, nil
}

func (r *reader) file(top value) *File {
	k := top.object("listen!", "name", "trusted", "forwarded", "grace", "access_log", "admin", "upstreams", "routes!")
	f := &File{Forwarded: k["forwarded"].boolean(), Upstreams: map[string]Upstream{}}
	f.Name = k["name"].text("a word such as edge-1", isToken)
	f.Grace = k["grace"].duration(0, time.Hour)
	if !k["grace"].is {
		f.Grace = defaultGrace
	}
	f.AccessLog = k["access_log"].text("a file", notEmpty)
	f.Admin = k["admin"].text("a path for a Unix socket", notEmpty)
	for _, v := range k["listen"].list() {
		f.Listen = append(f.Listen, v.listener())
	}
	if k["listen"].is && len(f.Listen) == 0 {
		k["listen"].wrong("want at least one address")
	}
	for _, v := range k["trusted"].list() {
		s := v.text("an address or a network, such as 10.0.0.0/8", func(s string) bool { _, ok := parsePrefix(s); return ok })
		if p, ok := parsePrefix(s); ok {
			f.Trusted = append(f.Trusted, p)
		}
	}
	names, values := k["upstreams"].members("a name for each pool of servers")
	for i, name := range names {
		f.Upstreams[name] = values[i].upstream()
	}
	for _, v := range k["routes"].list() {
		f.Routes = append(f.Routes, v.route(f.Upstreams))
	}
	return f
}

// defaultGrace is as long as most orchestrators wait, less a few seconds.
const defaultGrace = 15 * time.Second

func parsePrefix(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(s)
	return netip.PrefixFrom(a, a.BitLen()), err == nil
}

func (v value) listener() Listener {
	k := v.object("address!", "certificate", "key")
	l := Listener{
		Address: k["address"].text("host:port, such as 127.0.0.1:8080 or :8080", func(s string) bool {
			return proxy.CheckAddress("host"+s) == nil && s[0] == ':' || proxy.CheckAddress(s) == nil
		}),
		Certificate: k["certificate"].text("a file", notEmpty),
		Key:         k["key"].text("a file", notEmpty),
	}
	if (l.Certificate == "") != (l.Key == "") && len(v.r.problems) == 0 {
		v.wrong("a certificate and its key go together")
	}
	return l
}

func (v value) upstream() Upstream {
	k := v.object("servers!", "scheme", "balance", "key", "host", "eject", "panic", "check",
		"attempts", "try_timeout", "timeout", "budget", "fallback")
	u := Upstream{
		Scheme:     oneOf(k["scheme"], "http", "https"),
		Balance:    oneOf(k["balance"], proxy.LeastRequests, proxy.RoundRobin, proxy.PeakEWMA, proxy.ConsistentHash),
		Host:       k["host"].text("a host", isHost),
		Panic:      k["panic"].percent(),
		Attempts:   k["attempts"].integer(1, 100),
		TryTimeout: k["try_timeout"].duration(0, time.Hour),
		Timeout:    k["timeout"].duration(time.Millisecond, 24*time.Hour),
		Budget:     k["budget"].percent(),
	}
	u.noPanic = k["panic"].is && u.Panic == 0
	u.noBudget = k["budget"].is && u.Budget == 0
	u.noWait = k["try_timeout"].is && u.TryTimeout == 0
	for _, s := range k["servers"].list() {
		u.Servers = append(u.Servers, s.server(u.Servers))
	}
	if k["servers"].is && len(u.Servers) == 0 {
		k["servers"].wrong("want at least one server")
	}
	key := k["key"].object("header", "cookie")
	u.KeyHeader, u.KeyCookie = key["header"].text("a field's name", isToken), key["cookie"].text("a cookie's name", isToken)
	if k["key"].is && (u.Balance != proxy.ConsistentHash || (u.KeyHeader == "") == (u.KeyCookie == "")) {
		k["key"].wrong("is for balance: consistent_hash, and has a header or a cookie; without it the client's address is the key")
	}
	u.readHealth(k["eject"], k["check"])
	fallback := k["fallback"].object("status!", "type", "body")
	u.FallbackStatus = fallback["status"].integer(200, 599)
	u.FallbackType = fallback["type"].text("a media type such as application/json", isFieldValue)
	u.FallbackBody = fallback["body"].text("a text", func(string) bool { return true })
	return u
}

func (u *Upstream) readHealth(eject, check value) {
	k := eject.object("failures", "out", "most")
	u.Failures = k["failures"].integer(0, 1000)
	u.noEject = k["failures"].is && u.Failures == 0
	u.Out = k["out"].duration(time.Millisecond, 24*time.Hour)
	u.MostOut = k["most"].percent()
	k = check.object("path!", "host", "interval", "timeout", "fall", "rise")
	u.Check = proxy.Check{
		Path:     k["path"].text("a path that begins with /", isPath),
		Host:     k["host"].text("a host", isHost),
		Interval: k["interval"].duration(10*time.Millisecond, time.Hour),
		Timeout:  k["timeout"].duration(time.Millisecond, time.Hour),
		Fall:     k["fall"].integer(1, 1000),
		Rise:     k["rise"].integer(1, 1000),
	}
}

// mostServers is proxy's bound.
const mostServers, mostWeight = 256, 100

func (v value) server(others []proxy.Server) proxy.Server {
	k := v.object("address!", "weight")
	s := proxy.Server{
		Address: k["address"].text("host:port, such as 10.0.0.7:8080", func(s string) bool { return proxy.CheckAddress(s) == nil }),
		Weight:  k["weight"].integer(0, mostWeight),
	}
	s.Drain = k["weight"].is && s.Weight == 0
	for _, o := range others {
		if o.Address == s.Address && s.Address != "" {
			k["address"].wrong("%s is there twice", s.Address)
		}
	}
	if len(others) == mostServers {
		v.wrong("at most %d servers", mostServers)
	}
	return s
}

func (v value) route(upstreams map[string]Upstream) Route {
	k := v.object("host", "path!", "method", "header", "cookie", "strip", "upstream", "split", "redirect")
	r := Route{
		Host:   k["host"].text("a host", isHost),
		Path:   k["path"].text("a pattern that begins with /, such as /api/ or /users/{id}", isPath),
		Strip:  k["strip"].text("a path that begins with / and does not end with one", func(s string) bool { return isPath(s) && !strings.HasSuffix(s, "/") }),
		Header: k["header"].fields(), Cookie: k["cookie"].fields(),
	}
	for _, m := range k["method"].list() {
		r.Methods = append(r.Methods, m.text("a method in capitals, such as POST", func(s string) bool { return isToken(s) && strings.ToUpper(s) == s && s != http.MethodConnect }))
	}
	known := func(v value) string {
		return v.text("the name of one of upstreams", func(s string) bool { _, ok := upstreams[s]; return ok })
	}
	ways := 0
	for _, name := range []string{"upstream", "split", "redirect"} {
		if k[name].is {
			ways++
		}
	}
	if ways != 1 {
		v.wrong("want one of upstream, split and redirect")
	}
	if name := known(k["upstream"]); name != "" {
		r.Split = []Share{{name, 1}}
	}
	total := 0
	for _, s := range k["split"].list() {
		part := s.object("upstream!", "weight!")
		share := Share{known(part["upstream"]), part["weight"].integer(0, 10_000)}
		total += share.Weight
		r.Split = append(r.Split, share)
	}
	if k["split"].is && total == 0 {
		k["split"].wrong("want weights above 0")
	}
	to := k["redirect"].object("to!", "status")
	r.Location = to["to"].text("a path or a URL", func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && s != "" && isFieldValue(s) && (u.Host != "" || isPath(s))
	})
	if r.Status = to["status"].integer(300, 308); r.Status == 0 {
		r.Status = http.StatusFound
	}
	return r
}

// fields returns names with their values.
func (v value) fields() map[string]string {
	if !v.is {
		return nil
	}
	all := map[string]string{}
	names, values := v.members("names and values")
	for i, name := range names {
		all[name] = values[i].text(`a text (numbers in quotes), or "*" for any value`, func(s string) bool { return s != "" })
	}
	return all
}

func notEmpty(s string) bool { return s != "" && !strings.Contains(s, "\x00") }

func isFieldValue(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}

func isPath(s string) bool {
	return strings.HasPrefix(s, "/") && isFieldValue(s) && !strings.ContainsAny(s, "?# ")
}

func isHost(s string) bool { return isFieldValue(s) && !strings.ContainsAny(s, "/@?# ,") }

// isToken reports whether s is one of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// pool returns the options of the pool.
func (u *Upstream) pool() proxy.PoolOptions {
	o := proxy.PoolOptions{
		Servers: u.Servers, Scheme: u.Scheme, Balance: u.Balance, MostOut: u.MostOut, Panic: u.Panic, Check: u.Check,
		Eject: breaker.Options{Consecutive: u.Failures, Out: u.Out},
	}
	if u.noEject {
		o.Eject.Consecutive = -1
	}
	if u.noPanic {
		o.Panic = -1
	}
	switch {
	case u.KeyHeader != "":
		o.Key = proxy.ByHeader(u.KeyHeader)
	case u.KeyCookie != "":
		o.Key = proxy.ByCookie(u.KeyCookie)
	}
	return o
}

// handler returns the options of what passes requests on to the pool.
func (u *Upstream) handler(f *File, p *proxy.Pool) proxy.Options {
	o := proxy.Options{
		Pool: p, Name: f.Name, Trusted: f.Trusted, Forwarded: f.Forwarded, Host: u.Host,
		Attempts: u.Attempts, TryTimeout: u.TryTimeout, Budget: u.Budget,
	}
	if u.noBudget {
		o.Budget = -1
	}
	if u.noWait {
		o.TryTimeout = -1
	}
	if u.FallbackStatus != 0 {
		o.Fallback = &fallback{u.FallbackStatus, u.FallbackType, u.FallbackBody}
	}
	return o
}

// fallback answers in an upstream's place.
type fallback struct {
	status     int
	kind, body string
}

func (f *fallback) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if f.kind != "" {
		w.Header().Set("Content-Type", f.kind)
	}
	w.WriteHeader(f.status)
	_, _ = w.Write([]byte(f.body)) // fails when the client has gone
}
