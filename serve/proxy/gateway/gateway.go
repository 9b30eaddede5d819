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
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy/config"
)

// gateway is the listeners of a site. It is used by one goroutine.
type gateway struct {
	site    config.Site
	file    *config.File
	journal atomic.Pointer[journal] // answers requests
	admin   *admin                  // nil: none
	servers map[string]*server      // by address
	leaving sync.WaitGroup          // of servers whose address is no longer in the file
	failed  chan error
}

// server serves one address.
type server struct {
	serve.Server
	l           net.Listener
	certificate atomic.Pointer[tls.Certificate] // nil: no TLS
}

func newGateway() *gateway {
	g := &gateway{servers: map[string]*server{}, failed: make(chan error, 1)}
	g.site.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	return g
}

func (g *gateway) addresses() []string { return slices.Sorted(maps.Keys(g.servers)) }

// ServeHTTP answers by the file that was taken last.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.journal.Load().ServeHTTP(w, r)
}

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
	j, err := openJournal(f.AccessLog, &g.site)
	if err != nil {
		return err
	}
	next, err := g.open(f)
	var tells *admin
	if err == nil {
		tells, err = g.openAdmin(f)
	}
	if err == nil {
		err = g.site.Take(f)
	}
	if err != nil {
		j.close()
		g.closeNew(next)
		if tells != g.admin {
			tells.close()
		}
		return err
	}
	if old := g.journal.Swap(j); old != nil {
		time.AfterFunc(f.Grace, old.close) // requests that have begun have lines to write
	}
	if tells != g.admin {
		g.admin.close()
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
	a, err := openAdmin(path, &g.site)
	if err != nil && f.Admin == "" { // nobody has asked for it
		g.site.Log.Warn("there is no admin socket", "error", err)
		return nil, nil
	}
	return a, err
}

// change has the gateway listen with these servers and certificates, and with no others.
func (g *gateway) change(next map[string]*server, pairs []*tls.Certificate) {
	before := g.servers
	g.servers = next
	for i, l := range g.file.Listen {
		s := next[l.Address]
		if pairs[i] != nil {
			s.certificate.Store(pairs[i])
		}
		if before[l.Address] != s {
			go g.run(s)
		}
	}
	grace := g.file.Grace
	for address, s := range before {
		if next[address] != s {
			g.leaving.Go(func() { _ = s.finish(grace) }) // what did not end in time is cut
		}
	}
}

// certificates loads those of each listener; nil stands for none.
func certificates(f *config.File) ([]*tls.Certificate, error) {
	all := make([]*tls.Certificate, len(f.Listen))
	for i, l := range f.Listen {
		if l.Certificate == "" {
			continue
		}
		pair, err := tls.LoadX509KeyPair(l.Certificate, l.Key)
		if err != nil {
			return nil, &config.Problem{Path: fmt.Sprintf("listen[%d].certificate", i), Text: err.Error()}
		}
		all[i] = &pair
	}
	return all, nil
}

// open returns a server for each address of a file: the one that is there, or a new one
// whose listener is open.
func (g *gateway) open(f *config.File) (map[string]*server, error) {
	next := map[string]*server{}
	for i, l := range f.Listen {
		at := fmt.Sprintf("listen[%d].address", i)
		if next[l.Address] != nil {
			return next, &config.Problem{Path: at, Text: l.Address + " is there twice"}
		}
		if s := g.servers[l.Address]; s != nil {
			if (s.TLSConfig != nil) != (l.Certificate != "") || (s.Protocols != nil) != l.H2C {
				return next, &config.Problem{Path: at, Text: "cannot change between TLS and none, or h2c and none, while it is listened on: restart, or use another port"}
			}
			next[l.Address] = s
			continue
		}
		listener, err := net.Listen("tcp", l.Address)
		if err != nil {
			return next, &config.Problem{Path: at, Text: err.Error()}
		}
		next[l.Address] = g.newServer(listener, l)
	}
	return next, nil
}

func (g *gateway) newServer(l net.Listener, as config.Listener) *server {
	s := &server{l: l}
	s.Handler = g
	if as.H2C {
		s.Protocols = new(http.Protocols)
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
	}
	if as.Certificate != "" {
		s.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil }}
	}
	return s
}

// closeNew closes the listeners that were opened in vain.
func (g *gateway) closeNew(next map[string]*server) {
	for address, s := range next {
		if g.servers[address] != s {
			s.l.Close()
		}
	}
}

// run serves to the end.
func (g *gateway) run(s *server) {
	var err error
	if s.TLSConfig != nil {
		err = s.ServeTLS(s.l, "", "")
	} else {
		err = s.Serve(s.l)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		select {
		case g.failed <- fmt.Errorf("serving %s: %w", s.l.Addr(), err):
		default: // another one has failed
		}
	}
}

// finish answers requests that have begun, and cuts what takes longer.
func (s *server) finish(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := s.Shutdown(ctx)
	if err != nil {
		_ = s.Close() // its listener has been closed
	}
	return err
}

// end ends the gateway: requests and tunnels may go on for the file's grace, or to a
// further signal.
func (g *gateway) end(now <-chan os.Signal) error {
	if g.file == nil {
		return nil
	}
	defer func() {
		g.site.Close()
		g.admin.close()
		g.journal.Load().close()
	}()
	grace := g.file.Grace
	over := time.Now().Add(grace)
	done := make(chan struct{})
	go func() {
		var all sync.WaitGroup
		for _, s := range g.servers {
			all.Go(func() { _ = s.finish(grace) }) // what did not end in time is cut
		}
		all.Wait()
		g.leaving.Wait()
		for g.site.Tunnels() > 0 && time.Now().Before(over) {
			time.Sleep(50 * time.Millisecond)
		}
		close(done)
	}()
	select {
	case <-done:
	case <-now:
	}
	return nil
}

// adminPath is where the admin end point is; empty if there is none.
func (g *gateway) adminPath() string {
	if g.admin == nil {
		return ""
	}
	return g.admin.path
}
