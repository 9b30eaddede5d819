package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/proxy/config"
	"github.com/tarehq/tare/serve/proxy/gateway/region"
	"github.com/tarehq/tare/serve/proxy/tunnel"
)

// gateway is the listeners of a site. It is used by one goroutine.
type gateway struct {
	site    config.Site
	file    *config.File
	journal atomic.Pointer[journal] // logs requests
	retired []*journal              // before it, which may be open yet
	replies os.FileInfo             // where replies to files go; nil: nowhere
	admin   *admin                  // nil: none
	servers map[string]*server      // by address
	leaving sync.WaitGroup          // of servers whose address is no longer in the file
	failed  chan error

	program  string    // its path when it was started: there may be another one by now
	replaces string    // the admin socket of the gateway whose place the first file takes; empty: none
	former   former    // what there was before the first file
	words    chan word // of processes that are to go on in this one's place
	next     net.Conn  // of the one that has the sockets and cannot serve yet; nil: none
}

// server serves one address.
type server struct {
	serve.Server
	l            net.Listener
	given        bool                              // the socket was there before the program
	certificates atomic.Pointer[[]tls.Certificate] // none: no TLS
	redirect     atomic.Pointer[string]            // as the file has it
	passed       atomic.Bool                       // another process accepts what comes
	ended        chan struct{}                     // nothing is accepted any more
}

// certificate returns the first one that fits what a client asks for, else the first.
func (s *server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	all := *s.certificates.Load()
	for i := range all {
		if len(all) > 1 && hello.SupportsCertificate(&all[i]) == nil {
			return &all[i], nil
		}
	}
	return &all[0], nil
}

// newGateway returns one that takes the sockets of the gateway whose admin socket is at a
// path, once it has a file, or, if that is empty, of the service manager.
func newGateway(replaces string) (*gateway, error) {
	g := &gateway{servers: map[string]*server{}, failed: make(chan error, 1), replaces: replaces, words: make(chan word)}
	g.site.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	g.site.Regions = new(opener).open
	g.site.Journal = func(next http.Handler) http.Handler { return &logged{g, next} }
	g.site.Served = noteUpstream
	var err error
	if g.site.Metrics, err = metrics.New(metrics.Options{}); err != nil {
		return nil, err
	}
	if g.program, err = os.Executable(); err == nil && replaces == "" {
		g.former, err = activated()
	}
	return g, err
}

// openRegions opens a database of regions.
func openRegions(r config.Regions) (config.RegionFinder, error) {
	db, err := region.Open(r.Database, r.Field)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// opener opens databases, and returns the one that it has while its file is the same.
type opener struct {
	from config.Regions
	file os.FileInfo
	find config.RegionFinder
}

func (o *opener) open(from config.Regions) (config.RegionFinder, error) {
	fi, err := os.Stat(from.Database)
	if err != nil {
		return nil, err
	}
	if o.find != nil && o.from == from && os.SameFile(o.file, fi) && o.file.ModTime().Equal(fi.ModTime()) && o.file.Size() == fi.Size() {
		return o.find, nil
	}
	find, err := openRegions(from)
	if err == nil {
		*o = opener{from, fi, find}
	}
	return find, err
}

func (g *gateway) addresses() []string { return slices.Sorted(maps.Keys(g.servers)) }

// take has the gateway serve what a file says. With an error all stays as it was.
func (g *gateway) take(data []byte) error {
	f, err := config.Parse(data)
	if err != nil {
		return err
	}
	pairs, err := certificates(f)
	if err != nil {
		return err
	}
	was := g.journal.Load()
	j, err := openJournal(f.AccessLog, was, g.replies)
	if err != nil {
		return err
	}
	if g.replaces != "" {
		g.former, err = replace(g.replaces)
	}
	var next map[string]*server
	var tells *admin
	if err == nil {
		next, err = g.open(f)
	}
	if err == nil {
		tells, err = g.openAdmin(f)
	}
	if err == nil {
		err = g.site.Take(f)
	}
	if err == nil {
		err = g.former.succeed()
	}
	if err != nil {
		if j != was {
			j.close()
		}
		g.closeNew(next, tells)
		return err
	}
	g.replaces = ""
	g.journal.Store(j)
	if was != nil && j != was {
		g.retire(was)
	}
	for _, address := range g.former.settle() {
		g.site.Log.Warn("the file does not listen on a socket that was there", "address", address)
	}
	g.stay("it has read its file again since") // the next one has the sockets of the one before, and may have read it, too
	if tells != g.admin {
		g.admin.close()
		tells.start()
	}
	g.file, g.admin = f, tells
	g.change(next, pairs)
	return nil
}

// openAdmin returns the admin end point of a file: the one that is there, a new one, or nil.
func (g *gateway) openAdmin(f *config.File) (*admin, error) {
	path := f.Admin
	if path == "" && !f.NoAdmin {
		path = defaultAdmin()
	}
	switch {
	case path == "":
		return nil, nil
	case g.admin != nil && g.admin.path == path:
		return g.admin, nil
	}
	if l, ok := g.former.take("unix", path).(*net.UnixListener); ok {
		a := newAdmin(path, l, g)
		a.given, a.kept = true, g.former.kept
		return a, nil
	}
	l, err := listenAdmin(path)
	if err != nil && f.Admin == "" { // nobody has asked for it
		g.site.Log.Warn("there is no admin socket", "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newAdmin(path, l, g), nil
}

// change has the gateway listen with these servers and certificates, and with no others.
func (g *gateway) change(next map[string]*server, pairs map[string][]tls.Certificate) {
	before := g.servers
	g.servers = next
	for _, l := range g.file.Listen {
		next[l.Address].redirect.Store(&l.Redirect)
	}
	for address, s := range next {
		all := pairs[address]
		if s.certificates.Store(&all); before[address] != s {
			go g.run(s)
		}
	}
	grace := g.file.Grace
	for address, s := range before {
		if next[address] != s {
			g.leaving.Go(func() { s.finish(grace) })
		}
	}
}

// certificates loads those of each address, which stands in the file once for each of them.
func certificates(f *config.File) (map[string][]tls.Certificate, error) {
	all := map[string][]tls.Certificate{}
	for i, l := range f.Listen {
		before, there := all[l.Address]
		if there && (len(before) == 0 || l.Certificate == "") {
			return nil, &config.Problem{Path: fmt.Sprintf("listen[%d].address", i), Text: l.Address + " is there twice, which is for several certificates"}
		}
		if all[l.Address] = nil; l.Certificate == "" {
			continue
		}
		pair, err := tls.LoadX509KeyPair(l.Certificate, l.Key)
		if err != nil {
			return nil, &config.Problem{Path: fmt.Sprintf("listen[%d].certificate", i), Text: err.Error()}
		}
		all[l.Address] = append(before, pair)
	}
	return all, nil
}

// open returns a server for each address of a file: the one that is there, or a new one
// whose listener is open.
func (g *gateway) open(f *config.File) (map[string]*server, error) {
	next := map[string]*server{}
	for i, l := range f.Listen {
		at := fmt.Sprintf("listen[%d].address", i)
		if next[l.Address] != nil { // with another certificate
			continue
		}
		if s := g.servers[l.Address]; s != nil {
			if (s.TLSConfig != nil) != (l.Certificate != "") || (s.Protocols != nil) != l.H2C {
				return next, &config.Problem{Path: at, Text: "cannot change between TLS and none, or h2c and none, while it is listened on: restart, or use another port"}
			}
			next[l.Address] = s
			continue
		}
		listener := g.former.take("tcp", l.Address)
		given := listener != nil
		if !given {
			var err error
			if listener, err = net.Listen("tcp", l.Address); err != nil {
				return next, &config.Problem{Path: at, Text: err.Error()}
			}
		}
		next[l.Address] = g.newServer(listener, l)
		next[l.Address].given = given
	}
	return next, nil
}

func (g *gateway) newServer(l net.Listener, as config.Listener) *server {
	s := &server{l: l, ended: make(chan struct{})}
	s.Handler = &tunnel.Extended{Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnel.Last(w, r)
		if to := *s.redirect.Load(); to != "" {
			(&logged{g, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { redirect(w, r, to) })}).ServeHTTP(w, r)
			return
		}
		g.site.ServeHTTP(w, r)
	})}
	s.Lenient.Connect = true // the file says where it may lead
	if as.H2C {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
	}
	if as.Certificate != "" {
		s.TLSConfig = &tls.Config{GetCertificate: s.certificate}
	}
	return s
}

// redirect sends a request to the same host by another scheme, or scheme:port.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	scheme, port, _ := strings.Cut(to, ":")
	host := (&url.URL{Host: r.Host}).Hostname()
	target := r.URL.RequestURI()
	if host == "" || !strings.HasPrefix(target, "/") {
		http.Error(w, "want a path and a Host", http.StatusBadRequest)
		return
	}
	at := net.JoinHostPort(host, port)
	http.Redirect(w, r, scheme+"://"+strings.TrimSuffix(at, ":")+target, http.StatusPermanentRedirect)
}

// closeNew closes the listeners that were opened in vain. Those of the service manager wait
// for the next file; another gateway is asked again.
func (g *gateway) closeNew(next map[string]*server, tells *admin) {
	drop := func(l net.Listener, given bool) {
		if given {
			g.former.sockets = append(g.former.sockets, l)
		} else {
			l.Close()
		}
	}
	for address, s := range next {
		if g.servers[address] != s {
			drop(s.l, s.given)
		}
	}
	if tells != nil && tells != g.admin {
		drop(tells.l, tells.given)
	}
	if g.replaces != "" {
		g.former.close()
	}
}

// run serves to the end.
func (g *gateway) run(s *server) {
	defer close(s.ended)
	var err error
	if l := (&frugal{s.l, &g.site}); s.TLSConfig != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if !errors.Is(err, http.ErrServerClosed) && !s.passed.Load() {
		select {
		case g.failed <- fmt.Errorf("serving %s: %w", s.l.Addr(), err):
		default: // another one has failed
		}
	}
}

// frugal is a listener that has connections to services which nobody uses closed where the
// process has no descriptor for a client.
type frugal struct {
	net.Listener
	site *config.Site
}

// Accept returns the next connection. The server asks again if there was no descriptor.
func (l *frugal) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		l.site.CloseIdleConnections()
	}
	return c, err
}

// lastRequest is how long a connection on which nothing comes stays once another process
// accepts: its next request is answered, and the client told to open another one. To end
// it at once would lose the request that is on its way.
const lastRequest = 20 * time.Second

// finish answers requests that have begun, and cuts what takes longer.
func (s *server) finish(most time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		_ = s.Close() // its listener has been closed
	}
}

// hurry ends the last requests' wait: Shutdown ends connections on which nothing comes when
// half of its time is over.
func (s *server) hurry() {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_ = s.Shutdown(ctx) // who finishes it sees to the rest
}

// drain has requests and tunnels go on for some time. The channel is closed at their end.
func (g *gateway) drain(most time.Duration) <-chan struct{} {
	over := time.Now().Add(most)
	done := make(chan struct{})
	go func() {
		var all sync.WaitGroup
		for _, s := range g.servers {
			all.Go(func() { s.finish(most) })
		}
		all.Wait()
		g.leaving.Wait()
		for g.site.Tunnels() > 0 && time.Now().Before(over) {
			time.Sleep(50 * time.Millisecond)
		}
		close(done)
	}()
	return done
}

// end ends the gateway: requests and tunnels may go on for the file's grace, or to a
// further signal. A process that has the sockets goes on once it can serve.
func (g *gateway) end(now <-chan os.Signal) error {
	if g.file == nil {
		return nil
	}
	if g.yield() {
		g.part(g.file.Grace)
	} else {
		g.admin.close()
	}
	select {
	case <-g.drain(g.file.Grace):
	case <-now:
	}
	g.site.Close()
	g.closeJournals()
	return nil
}

// leave ends the gateway once another process has its sockets: what is open may go on for
// as long as the file says, or to a signal, with which it is to end as usual.
func (g *gateway) leave(now <-chan os.Signal) error {
	g.part(g.file.Linger)
	select {
	case <-g.drain(g.file.Linger):
		g.site.Close()
		g.closeJournals()
		return nil
	case <-now:
		for _, s := range g.servers {
			go s.hurry()
		}
		return g.end(now)
	}
}

// part leaves the sockets to the process that has them, too.
func (g *gateway) part(most time.Duration) {
	g.admin.release()
	g.admin = nil
	for _, s := range g.servers {
		s.passed.Store(true)
		s.l.Close() // Shutdown would have the kernel begin no connections, also not for the other process
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, s := range g.servers {
		select {
		case <-s.ended:
		case <-ctx.Done(): // it waits for a place for one that it has accepted
		}
		s.Limits.ShutdownGrace = lastRequest
	}
	g.site.Log.Info("another process accepts what comes", "most", most)
}

// adminPath is where the admin end point is; empty if there is none.
func (g *gateway) adminPath() string {
	if g.admin == nil {
		return ""
	}
	return g.admin.path
}
