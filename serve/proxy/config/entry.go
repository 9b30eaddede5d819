package config

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/client/transport"
	"github.com/tarehq/tare/serve/middleware/clientaddr"
	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/internal/keyfile"
	"github.com/tarehq/tare/serve/proxy/internal/tree"
)

// entry is an upstream that requests are passed on to.
type entry struct {
	u         Upstream // without its servers
	pool      *proxy.Pool
	handler   *proxy.Handler
	transport *transport.Transport
	finder    *finder // nil: the file names the servers

	mu      sync.Mutex
	servers []proxy.Server
	drained map[string]bool
}

func newEntry(u Upstream, f *File) (*entry, error) {
	pool, err := proxy.NewPool(u.pool())
	if err != nil {
		return nil, err
	}
	o := u.handler(f, pool)
	t := proxy.NewTransport(u.Timeout)
	if u.Scheme == proxy.UnencryptedHTTP2 {
		t.UnencryptedHTTP2, t.Other = true, proxy.NewUnencryptedHTTP2(u.Timeout)
	}
	if u.Scheme == "https" {
		t.TLS = u.Trust.Config()
		t.Other.(*http.Transport).TLSClientConfig = u.Trust.Config()
	}
	t.Conns, t.Queue, t.QueueTimeout, t.Warm = u.Conns, u.Queue, u.QueueTimeout, u.Warm
	e := &entry{pool: pool, transport: t, drained: map[string]bool{}}
	o.Transport = t
	if e.handler, err = proxy.New(o); err != nil {
		pool.Close()
		return nil, err
	}
	u.Servers = nil
	e.u = u
	return e, nil
}

// readTrust reads how the servers are known by TLS. Those of DNS are asked for by their name, as
// certificates of addresses are rare.
func (u *Upstream) readTrust(v tree.Value) {
	k := v.Object("name", "ca", "certificate", "key")
	name := k["name"].Text("a host that the servers' certificates have", tree.IsHost)
	ca := k["ca"].Text("a file of certificates in PEM", tree.NotEmpty)
	certificate, key := k["certificate"].Text("a file in PEM", tree.NotEmpty), k["key"].Text("a file in PEM", tree.NotEmpty)
	if v.Is && u.Scheme != "https" {
		v.Wrong("is for scheme: https")
	}
	if name == "" && u.DNS != nil && u.DNS.Port != 0 {
		name = strings.TrimSuffix(u.DNS.Name, ".")
	}
	var err error
	if u.Trust, err = keyfile.ReadTrust(name, ca, certificate, key); err != nil {
		v.Wrong("%v", err)
	}
}

// set has the upstream have these servers.
func (e *entry) set(servers []proxy.Server) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.servers = servers
	return e.applyLocked()
}

func (e *entry) applyLocked() error {
	now := append([]proxy.Server{}, e.servers...)
	for i := range now {
		now[i].Drain = now[i].Drain || e.drained[now[i].Address]
	}
	return e.pool.Set(now)
}

// drain has a server get no new requests, or get them again.
func (e *entry) drain(address string, drain bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.servers {
		if s.Address == address {
			e.drained[address] = drain
			return e.applyLocked()
		}
	}
	return fmt.Errorf("there is no server %q", address)
}

// byClient is a key that is the client's address, which trusted proxies may have named.
func byClient(r *http.Request) string {
	if addr := clientaddr.From(r); addr.IsValid() {
		return addr.String()
	}
	return ""
}

// closeAll ends what upstreams that are gone do of themselves.
func closeAll(all []*entry) {
	for _, e := range all {
		if e.finder != nil {
			e.finder.stop()
		}
		e.pool.Close()
		e.transport.CloseIdleConnections()
	}
}

// source finds servers.
type source interface {
	Watch(ctx context.Context, found func([]proxy.Server, error))
}

// source is who finds the upstream's servers; nil if the file names them.
func (u *Upstream) source() source {
	switch {
	case u.DNS != nil:
		return u.DNS
	case u.Kubernetes != nil:
		return u.Kubernetes
	}
	return nil
}

// finder is what finds an upstream's servers while it is there.
type finder struct {
	stop  context.CancelFunc
	first chan struct{} // closed once it has found some, or not

	mu  sync.Mutex
	err error
}

// find begins to find the upstream's servers, if others are to.
func (e *entry) find(name string, log *slog.Logger) {
	from := e.u.source()
	if from == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &finder{stop: cancel, first: make(chan struct{})}
	e.finder = f
	begin := sync.OnceFunc(func() { close(f.first) })
	go from.Watch(ctx, func(servers []proxy.Server, err error) {
		if err == nil {
			err = e.set(servers)
		}
		f.mu.Lock()
		before := f.err
		f.err = err
		f.mu.Unlock()
		begin()
		switch {
		case log == nil, ctx.Err() != nil:
		case err != nil && (before == nil || before.Error() != err.Error()):
			log.Warn("finding servers", "upstream", name, "error", err)
		case err == nil:
			log.Info("found servers", "upstream", name, "servers", len(servers))
		}
	})
}

// problem returns why servers could not be found the last time.
func (e *entry) problem() error {
	if e.finder == nil {
		return nil
	}
	e.finder.mu.Lock()
	defer e.finder.mu.Unlock()
	return e.finder.err
}

// patience is how long a file waits for servers to be found. Until they are, requests are
// answered 503.
const patience = 3 * time.Second

// await waits until all have looked for their servers once.
func await(all []*entry) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, e := range all {
		if e.finder == nil {
			continue
		}
		select {
		case <-e.finder.first:
		case <-late.C:
			return
		}
	}
}
