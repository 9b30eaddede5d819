package config

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/discover"
	"github.com/tarehq/tare/serve/proxy/discover/kube"
	"github.com/tarehq/tare/serve/proxy/internal/keyfile"
	"github.com/tarehq/tare/serve/proxy/internal/routing"
	"github.com/tarehq/tare/serve/proxy/internal/tree"
)

// Problem is one thing wrong in a file.
type Problem = tree.Problem

// Problems are all that is wrong in one file.
type Problems = tree.Problems

// File is what a file says.
type File struct {
	Listen    []Listener
	Name      string         // in Via; empty: a random one
	Trusted   []netip.Prefix // proxies before this one
	Forwarded bool           // the field of RFC 7239 is written
	Grace     time.Duration  // how long requests may go on once the program is to end
	Linger    time.Duration  // how long they and tunnels may once another process has its sockets
	AccessLog string         // a file; empty: none
	Admin     string         // a Unix socket; empty: that of the program's choice
	NoAdmin   bool           // there is none
	Regions   Regions        // of clients
	Connect   []string       // where CONNECT may lead
	Upstreams map[string]Upstream
	Routes    []Route

	guards []Guard      // around all routes
	find   RegionFinder // once it is served; nil: no region is known
	served proxy.Served // once it is served
}

// Listener is where requests come from; with a certificate by TLS.
type Listener struct {
	Address, Certificate, Key string
	H2C                       bool   // HTTP/2 comes without TLS, too
	Redirect                  string // https, or https:PORT, where all requests are sent to; empty: routes decide
}

// Upstream is a pool and how requests are passed on to it.
type Upstream struct {
	Servers                            []proxy.Server
	DNS                                *discover.DNS // finds the servers, if it is set
	Kubernetes                         *kube.Service // likewise
	Scheme, Zone                       string
	SlowStart, Hedge                   time.Duration
	Balance                            proxy.Balance
	KeyHeader, KeyCookie               string
	Host                               string
	Failures                           int
	Out                                time.Duration
	MostOut, Panic, FailedShare        float64
	Least                              int
	Window, Slow                       time.Duration
	Check                              proxy.Check
	Trust                              keyfile.Trust // how the servers are known by TLS
	Attempts                           int
	TryTimeout, Timeout, Pause         time.Duration
	Budget                             float64
	FallbackStatus                     int
	FallbackType, FallbackBody         string
	Conns, Queue, Warm                 int // connections to each server, or streams: at most, requests that wait for one, and open beforehand
	QueueTimeout                       time.Duration
	noBudget, noPanic, noEject, noWait bool // were set to nothing
}

// Route says what becomes of requests. The first of the routes with one host, path and
// method whose fields are there is taken.
type Route struct {
	Host, Path string
	Methods    []string
	Fields     routing.Fields // must be there
	Strip      string         // is taken off the path
	Prepend    string         // is put before what is left
	Split      []Share
	Redirect   routing.Redirect // if there is no upstream
	Shadow     string           // the upstream that gets copies; empty: none does
	Copied     float64          // the share of requests that are copied

	guards []Guard
}

// Share of the requests, by weight, that an upstream gets.
type Share struct {
	Upstream string
	Weight   int
}

// Parse reads a file of JSON. The error is [Problems].
func Parse(data []byte) (*File, error) {
	top := tree.Read(data)
	if !top.Is {
		return nil, top.Problems()
	}
	f := readFile(top)
	problems := top.Problems()
	if len(problems) == 0 {
		_, err := f.router(func(Route) (http.Handler, error) { return http.NotFoundHandler(), nil })
		if p, ok := errors.AsType[*Problem](err); ok {
			problems = append(problems, *p)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return f, nil
}

// Schema returns the JSON Schema of files, for editors. It is made by what reads a file, so
// that both know the same keys. What refers from one part of a file to another, only Parse
// finds.
func Schema() []byte {
	top := tree.Describe()
	readFile(top)
	return top.Schema("tare proxy")
}

func readFile(top tree.Value) *File {
	var r guardReader
	k := top.Object("listen!", "name", "trusted", "forwarded", "grace", "linger", "access_log", "admin", "regions", "connect", "middlewares", "guards", "upstreams", "routes!")
	f := &File{Forwarded: k["forwarded"].Boolean(), Upstreams: map[string]Upstream{}}
	f.Name = k["name"].Text("a word such as edge-1", tree.IsToken)
	f.Grace = k["grace"].Duration(0, time.Hour)
	if !k["grace"].Is {
		f.Grace = defaultGrace
	}
	f.Linger = k["linger"].Duration(0, 24*time.Hour)
	if !k["linger"].Is {
		f.Linger = defaultLinger
	}
	f.Regions = readRegions(k["regions"])
	f.Connect = k["connect"].Texts("host:port, such as db.internal:5432", isAddress)
	f.AccessLog = k["access_log"].Text("a file", tree.NotEmpty)
	f.Admin = k["admin"].Text("a path for a Unix socket, or none", tree.NotEmpty)
	if f.Admin == "none" {
		f.Admin, f.NoAdmin = "", true
	}
	for _, v := range k["listen"].List() {
		f.Listen = append(f.Listen, readListener(v))
	}
	if k["listen"].Is && len(f.Listen) == 0 {
		k["listen"].Wrong("want at least one address")
	}
	f.Trusted = k["trusted"].Prefixes()
	f.guards = append(trusting(f.Trusted), r.list(k["middlewares"])...)
	checkOrder(k["middlewares"], nil, f.guards)
	guards := map[string][]Guard{}
	names, values := k["guards"].Members("a name for each list of middlewares")
	for i, name := range names {
		if values[i].DescribesAs("#/properties/middlewares") {
			break
		}
		guards[name] = r.list(values[i])
		checkOrder(values[i], f.guards, guards[name])
	}
	names, values = k["upstreams"].Members("a name for each pool of servers")
	for i, name := range names {
		f.Upstreams[name] = readUpstream(values[i])
	}
	for _, v := range k["routes"].List() {
		r := readRoute(v, f.Upstreams, guards)
		if len(r.Fields.Regions) > 0 && !k["regions"].Is {
			v.Wrong("region needs the key regions beside routes, which names a database")
		}
		f.Routes = append(f.Routes, r)
	}
	return f
}

const (
	// defaultGrace is as long as most orchestrators wait, less a few seconds.
	defaultGrace = 15 * time.Second
	// defaultLinger ends what is open for a long time after a restart, as WebSockets are.
	defaultLinger = 10 * time.Minute
)

func readListener(v tree.Value) Listener {
	k := v.Object("address!", "certificate", "key", "h2c", "redirect")
	l := Listener{
		H2C: k["h2c"].Boolean(),
		Address: k["address"].Text("host:port, such as 127.0.0.1:8080 or :8080", func(s string) bool {
			return proxy.CheckAddress("host"+s) == nil && s[0] == ':' || proxy.CheckAddress(s) == nil
		}),
		Certificate: k["certificate"].Text("a file", tree.NotEmpty),
		Key:         k["key"].Text("a file", tree.NotEmpty),
		Redirect:    k["redirect"].Text("https, or https with a port such as https:8443", isRedirect),
	}
	if (l.Certificate == "") != (l.Key == "") && len(v.Problems()) == 0 {
		v.Wrong("a certificate and its key go together")
	}
	if l.Redirect != "" && l.Certificate != "" {
		k["redirect"].Wrong("is for an address without a certificate")
	}
	if l.H2C && l.Certificate != "" {
		k["h2c"].Wrong("is for HTTP/2 without TLS; with a certificate there is HTTP/2 anyway")
	}
	return l
}

func readUpstream(v tree.Value) Upstream {
	k := v.Object("servers", "dns", "kubernetes", "scheme", "tls", "zone", "balance", "key", "host", "eject", "panic", "check",
		"attempts", "try_timeout", "timeout", "pause", "budget", "slow_start", "hedge", "fallback", "connections")
	u := Upstream{
		Scheme:     tree.OneOf(k["scheme"], "http", "https", proxy.UnencryptedHTTP2),
		Zone:       k["zone"].Text("a name", tree.NotEmpty),
		SlowStart:  k["slow_start"].Duration(time.Millisecond, time.Hour),
		Hedge:      k["hedge"].Duration(time.Millisecond, time.Hour),
		Balance:    tree.OneOf(k["balance"], proxy.LeastRequests, proxy.RoundRobin, proxy.PeakEWMA, proxy.ConsistentHash),
		Host:       k["host"].Text("a host", tree.IsHost),
		Panic:      k["panic"].Percent(),
		Attempts:   k["attempts"].Integer(1, 100),
		TryTimeout: k["try_timeout"].Duration(0, time.Hour),
		Timeout:    k["timeout"].Duration(time.Millisecond, 24*time.Hour),
		Pause:      k["pause"].Duration(time.Millisecond, 24*time.Hour),
		Budget:     k["budget"].Percent(),
	}
	u.noPanic = k["panic"].Is && u.Panic == 0
	u.noBudget = k["budget"].Is && u.Budget == 0
	u.noWait = k["try_timeout"].Is && u.TryTimeout == 0
	u.readServers(v, k)
	u.readTrust(k["tls"])
	if u.SlowStart > 0 && u.Balance == proxy.ConsistentHash {
		k["slow_start"].Wrong("does not go with balance: consistent_hash, whose keys stay with their server")
	}
	key := k["key"].Object("header", "cookie")
	u.KeyHeader, u.KeyCookie = key["header"].Text("a field's name", tree.IsToken), key["cookie"].Text("a cookie's name", tree.IsToken)
	if k["key"].Is && (u.Balance != proxy.ConsistentHash || (u.KeyHeader == "") == (u.KeyCookie == "")) {
		k["key"].Wrong("is for balance: consistent_hash, and has a header or a cookie; without it the client's address is the key")
	}
	u.readHealth(k["eject"], k["check"])
	u.readConnections(k["connections"])
	fallback := k["fallback"].Object("status!", "type", "body")
	u.FallbackStatus = fallback["status"].Integer(200, 599)
	u.FallbackType = fallback["type"].Text("a media type such as application/json", tree.IsFieldValue)
	u.FallbackBody = fallback["body"].Text("a text", func(string) bool { return true })
	return u
}

// readServers reads which servers there are, or who finds them.
func (u *Upstream) readServers(v tree.Value, k map[string]tree.Value) {
	ways := 0
	for _, name := range []string{"servers", "dns", "kubernetes"} {
		if k[name].Is {
			ways++
		}
	}
	if ways != 1 {
		v.Wrong("want one of servers, dns and kubernetes")
	}
	for _, s := range k["servers"].List() {
		u.Servers = append(u.Servers, readServer(s, u.Servers))
	}
	if u.Zone != "" && slices.ContainsFunc(u.Servers, func(s proxy.Server) bool { return s.Backup }) {
		k["servers"].Wrong("backup does not go with the upstream's zone")
	}
	if k["servers"].Is && len(u.Servers) == 0 {
		k["servers"].Wrong("want at least one server")
	}
	d := k["dns"].Object("name!", "port", "resolver")
	dns := discover.DNS{
		Name:   d["name"].Text("a name such as shop.internal, or of SRV records such as _http._tcp.shop.internal", tree.IsHost),
		Port:   uint16(d["port"].Integer(1, 65535)),
		Server: d["resolver"].Text("host:port of a DNS server", isAddress),
	}
	if dns.Name != "" {
		u.DNS = &dns
		if !d["port"].Is && !strings.HasPrefix(dns.Name, "_") {
			k["dns"].Wrong("lacks the key port; only SRV records, whose names begin with _, say it")
		}
	}
	c := k["kubernetes"].Object("service!", "namespace", "port", "api", "account")
	s := kube.Service{
		Name: c["service"].Text("a service's name", tree.IsLabel), Namespace: c["namespace"].Text("a namespace", tree.IsLabel),
		Port: c["port"].Text("the name of a port", tree.IsLabel), API: c["api"].Text("the API server's URL, by https", func(s string) bool { return strings.HasPrefix(s, "https://") }),
		Account: c["account"].Text("a folder with token, ca.crt and namespace", tree.NotEmpty),
	}
	if s.Name != "" {
		u.Kubernetes = &s
	}
}

// isRedirect reports whether s is https, or that and a port.
func isRedirect(s string) bool {
	port, ok := strings.CutPrefix(s, "https:")
	return s == "https" || ok && proxy.CheckAddress("host:"+port) == nil
}

func isAddress(s string) bool { return proxy.CheckAddress(s) == nil }

func (u *Upstream) readHealth(eject, check tree.Value) {
	k := eject.Object("failures", "share", "least", "window", "slow", "out", "most")
	u.Failures = k["failures"].Integer(0, 1000)
	u.noEject = k["failures"].Is && u.Failures == 0
	u.FailedShare = k["share"].Percent()
	u.Least = k["least"].Integer(1, 1_000_000)
	u.Window = k["window"].Duration(time.Second, time.Hour)
	if (k["least"].Is || k["window"].Is) && u.FailedShare == 0 {
		eject.Wrong("least and window go with share")
	}
	u.Slow = k["slow"].Duration(time.Millisecond, time.Hour)
	u.Out = k["out"].Duration(time.Millisecond, 24*time.Hour)
	u.MostOut = k["most"].Percent()
	k = check.Object("path", "grpc", "host", "interval", "timeout", "fall", "rise")
	u.Check = proxy.Check{
		Path:     k["path"].Text("a path that begins with /", tree.IsPath),
		GRPC:     k["grpc"].Boolean(),
		Host:     k["host"].Text("a host", tree.IsHost),
		Interval: k["interval"].Duration(10*time.Millisecond, time.Hour),
		Timeout:  k["timeout"].Duration(time.Millisecond, time.Hour),
		Fall:     k["fall"].Integer(1, 1000),
		Rise:     k["rise"].Integer(1, 1000),
	}
	if check.Is && k["path"].Is == u.Check.GRPC {
		check.Wrong("want path, or grpc: true")
	}
	if u.Check.GRPC && u.Scheme != "https" && u.Scheme != proxy.UnencryptedHTTP2 {
		k["grpc"].Wrong("is for scheme: https or h2c")
	}
}

// mostWarm is as many connections as are kept idle.
const mostWarm = 512

func (u *Upstream) readConnections(v tree.Value) {
	k := v.Object("most", "queue", "wait", "warm")
	u.Conns = k["most"].Integer(1, 1_000_000)
	if u.Queue = k["queue"].Integer(0, 1_000_000); k["queue"].Is && u.Queue == 0 {
		u.Queue = -1
	}
	u.QueueTimeout = k["wait"].Duration(time.Millisecond, time.Hour)
	u.Warm = k["warm"].Integer(1, mostWarm)
	switch {
	case k["warm"].Is && u.Scheme == proxy.UnencryptedHTTP2:
		k["warm"].Wrong("does not go with scheme: h2c, whose requests share connections")
	case (k["queue"].Is || k["wait"].Is) && !k["most"].Is:
		v.Wrong("queue and wait go with most")
	case u.Conns > 0 && u.Warm > u.Conns:
		k["warm"].Wrong("%d are more than most, which is %d", u.Warm, u.Conns)
	}
}

// mostServers is proxy's bound.
const mostServers, mostWeight = 256, 100

func readServer(v tree.Value, others []proxy.Server) proxy.Server {
	k := v.Object("address!", "weight", "zone", "backup")
	s := proxy.Server{
		Address: k["address"].Text("host:port, such as 10.0.0.7:8080", isAddress),
		Zone:    k["zone"].Text("a name", tree.NotEmpty),
		Weight:  k["weight"].Integer(0, mostWeight),
		Backup:  k["backup"].Boolean(),
	}
	s.Drain = k["weight"].Is && s.Weight == 0
	if s.Address != "" && slices.ContainsFunc(others, func(o proxy.Server) bool { return o.Address == s.Address }) {
		k["address"].Wrong("%s is there twice", s.Address)
	}
	if len(others) == mostServers {
		v.Wrong("at most %d servers", mostServers)
	}
	return s
}

func readRoute(v tree.Value, upstreams map[string]Upstream, guards map[string][]Guard) Route {
	k := v.Object("host", "path!", "method", "header", "cookie", "region", "strip", "prepend", "upstream", "split", "redirect", "guard", "shadow")
	r := Route{
		Host:  routing.PlainHost(k["host"].Text("one host, without * or a port", func(s string) bool { return tree.IsHost(s) && !isAddress(s) })),
		Path:  k["path"].Text("a pattern that begins with /, such as /api/ or /users/{id}", tree.IsPath),
		Strip: k["strip"].Text("a path that begins with / and does not end with one", func(s string) bool { return tree.IsPath(s) && !strings.HasSuffix(s, "/") }),
		Prepend: k["prepend"].Text("a path that begins with / and does not end with one, without what is to be escaped", func(s string) bool {
			return tree.IsPath(s) && !strings.HasSuffix(s, "/") && (&url.URL{Path: s}).EscapedPath() == s
		}),
		Fields: routing.Fields{Header: readFields(k["header"]), Cookie: readFields(k["cookie"]), Regions: readRegionNames(k["region"])},
	}
	if !strings.HasPrefix(r.Path, r.Strip) && !strings.HasPrefix(r.Strip, r.Path) && !strings.Contains(r.Path, "{") {
		k["strip"].Wrong("no path of the route begins with %s", r.Strip)
	}
	for _, m := range k["method"].List() {
		r.Methods = append(r.Methods, m.Text("a method in capitals, such as POST", func(s string) bool { return tree.IsToken(s) && strings.ToUpper(s) == s && s != http.MethodConnect }))
	}
	r.guards = guards[k["guard"].Text("the name of one of guards", func(s string) bool { _, ok := guards[s]; return ok })]
	known := func(v tree.Value) string {
		return v.Text("the name of one of upstreams", func(s string) bool { _, ok := upstreams[s]; return ok })
	}
	ways := 0
	for _, name := range []string{"upstream", "split", "redirect"} {
		if k[name].Is {
			ways++
		}
	}
	if ways != 1 {
		v.Wrong("want one of upstream, split and redirect")
	}
	if name := known(k["upstream"]); name != "" {
		r.Split = []Share{{name, 1}}
	}
	total := 0
	for _, s := range k["split"].List() {
		part := s.Object("upstream!", "weight!")
		share := Share{known(part["upstream"]), part["weight"].Integer(0, 10_000)}
		total += share.Weight
		r.Split = append(r.Split, share)
	}
	if k["split"].Is && total == 0 {
		k["split"].Wrong("want weights above 0")
	}
	copies := k["shadow"].Object("upstream!", "share")
	r.Shadow, r.Copied = known(copies["upstream"]), copies["share"].Percent()
	if copies["share"].Is && r.Copied == 0 {
		copies["share"].Wrong("want more than 0%%, or no shadow")
	}
	if k["shadow"].Is && k["redirect"].Is {
		k["shadow"].Wrong("there is nothing to copy where requests are redirected")
	}
	to := k["redirect"].Object("to!", "status", "keep")
	r.Redirect.Keep = to["keep"].Boolean()
	r.Redirect.To = to["to"].Text("a path or a URL", func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && s != "" && tree.IsFieldValue(s) && (u.Host != "" || tree.IsPath(s))
	})
	if r.Redirect.Keep && (strings.HasSuffix(r.Redirect.To, "/") || strings.ContainsAny(r.Redirect.To, "?#")) {
		to["to"].Wrong("with keep: true the request's path and query follow, so want no / at its end, no ? and no #")
	}
	if r.Redirect.Status = to["status"].Integer(300, 308); r.Redirect.Status == 0 {
		r.Redirect.Status = http.StatusFound
	}
	return r
}

// readFields returns names with their values.
func readFields(v tree.Value) map[string]string {
	if !v.Is && !v.Describes() {
		return nil
	}
	all := map[string]string{}
	names, values := v.Members("names and values")
	for i, name := range names {
		all[name] = values[i].Text(`a text (numbers in quotes), or "*" for any value`, func(s string) bool { return s != "" })
	}
	return all
}

// pool returns the options of the pool.
func (u *Upstream) pool() proxy.PoolOptions {
	o := proxy.PoolOptions{
		Servers: u.Servers, Scheme: u.Scheme, Balance: u.Balance, MostOut: u.MostOut, Panic: u.Panic, Check: u.Check,
		Zone: u.Zone, SlowStart: u.SlowStart, Found: u.source() != nil,
		Eject: breaker.Options{Consecutive: u.Failures, Share: u.FailedShare, Least: u.Least, Window: u.Window, Slow: u.Slow, Out: u.Out},
	}
	if u.Scheme == "https" {
		o.Check.TLS = u.Trust.Config()
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
	default:
		o.Key = byClient
	}
	return o
}

// handler returns the options of what passes requests on to the pool.
func (u *Upstream) handler(f *File, p *proxy.Pool) proxy.Options {
	o := proxy.Options{
		Pool: p, Name: f.Name, Trusted: f.Trusted, Forwarded: f.Forwarded, Host: u.Host,
		Attempts: u.Attempts, TryTimeout: u.TryTimeout, Pause: u.Pause, Budget: u.Budget, Hedge: u.Hedge, Served: f.served,
	}
	if u.noBudget {
		o.Budget = -1
	}
	if u.noWait {
		o.TryTimeout = -1
	}
	if u.FallbackStatus != 0 {
		o.Fallback = &routing.Fallback{Status: u.FallbackStatus, Type: u.FallbackType, Body: u.FallbackBody}
	}
	return o
}
