package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/config"
)

// admin tells on a Unix socket how the gateway fares, and takes servers out. Who may open
// the socket may ask: it is the owner's alone.
type admin struct {
	path  string
	site  *config.Site
	l     *net.UnixListener
	given bool // the socket was there before the program
	kept  bool // the service manager keeps it: its path stays
	words chan<- word
	s     http.Server
}

// state is what it tells.
type state struct {
	Upstreams map[string][]proxy.Status `json:"upstreams"`
	Requests  map[string]proxy.Counts   `json:"requests"`           // by upstream
	Problems  map[string]string         `json:"problems,omitempty"` // of finding servers, by upstream
	Shadows   map[string]config.Copies  `json:"shadows,omitempty"`
	Tunnels   int                       `json:"tunnels"`
}

// defaultAdmin is where the socket is if the file does not say: in the folder that the
// service manager made for the program, or the user's for such. Empty: there is none.
func defaultAdmin() string {
	if dir := os.Getenv("RUNTIME_DIRECTORY"); dir != "" {
		return filepath.Join(dir, "admin.sock")
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, fmt.Sprintf("tare-proxy-%d.sock", os.Getpid()))
	}
	return ""
}

// newAdmin returns one that is to answer on a socket.
func newAdmin(path string, l *net.UnixListener, g *gateway) *admin {
	a := &admin{path: path, site: &g.site, l: l, words: g.words}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", a.status)
	mux.HandleFunc("GET /metrics", a.metrics)
	mux.HandleFunc("GET /region", a.region)
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, r *http.Request) { a.drain(w, r, true) })
	mux.HandleFunc("POST /undrain", func(w http.ResponseWriter, r *http.Request) { a.drain(w, r, false) })
	mux.HandleFunc("POST /handover", a.handOver)
	a.s = http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return a
}

// start has it answer.
func (a *admin) start() {
	if a != nil {
		a.l.SetUnlinkOnClose(!a.kept)
		go func() { _ = a.s.Serve(a.l) }() // to its end
	}
}

// listenAdmin listens at a path; a socket that nobody listens on any more gives way.
func listenAdmin(path string) (*net.UnixListener, error) {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return nil, &config.Problem{Path: "admin", Text: fmt.Sprintf("%s is in use", path)}
	}
	if fi, lost := os.Stat(path); lost == nil && fi.Mode().Type() == os.ModeSocket && errors.Is(err, syscall.ECONNREFUSED) {
		_ = os.Remove(path) // else listening fails, and says why
	}
	private := net.ListenConfig{Control: keepPrivate} // it is nobody else's for no instant
	l, err := private.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, &config.Problem{Path: "admin", Text: err.Error()}
	}
	if err := os.Chmod(path, 0o600); err != nil { // for systems that go by the umask alone
		l.Close()
		return nil, &config.Problem{Path: "admin", Text: err.Error()}
	}
	return l.(*net.UnixListener), nil
}

func (a *admin) status(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(state{ // fails when the client has gone
		a.site.Status(), a.site.Counts(), a.site.Problems(), a.site.Copies(), a.site.Tunnels(),
	})
}

// metrics answers in the format that Prometheus reads.
func (a *admin) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	status, counts := a.site.Status(), a.site.Counts()
	family := func(name, kind, help string, value func(proxy.Status) float64) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		for _, upstream := range slices.Sorted(maps.Keys(status)) {
			for _, s := range status[upstream] {
				fmt.Fprintf(w, "%s{upstream=%q,server=%q} %g\n", name, upstream, s.Address, value(s))
			}
		}
	}
	family("tare_proxy_server_healthy", "gauge", "1 if the server gets requests.", func(s proxy.Status) float64 {
		if s.Healthy {
			return 1
		}
		return 0
	})
	family("tare_proxy_server_in_flight", "gauge", "Requests that the server is at.", func(s proxy.Status) float64 { return float64(s.InFlight) })
	family("tare_proxy_server_attempts_total", "counter", "Attempts that were sent to the server.", func(s proxy.Status) float64 { return float64(s.Requests) })
	family("tare_proxy_server_ejections_total", "counter", "How often the server was left alone.", func(s proxy.Status) float64 { return float64(s.Ejected) })
	const answers = "tare_proxy_server_answers_total"
	fmt.Fprintf(w, "# HELP %s Answers of the server to attempts, by the class of their status.\n# TYPE %s counter\n", answers, answers)
	for _, upstream := range slices.Sorted(maps.Keys(status)) {
		for _, s := range status[upstream] {
			for _, class := range slices.Sorted(maps.Keys(s.Answers)) {
				fmt.Fprintf(w, "%s{upstream=%q,server=%q,class=%q} %d\n", answers, upstream, s.Address, class, s.Answers[class])
			}
		}
	}
	const name = "tare_proxy_upstream_requests_total"
	fmt.Fprintf(w, "# HELP %s Requests, and what became of them.\n# TYPE %s counter\n", name, name)
	for _, upstream := range slices.Sorted(maps.Keys(counts)) {
		c := counts[upstream]
		for _, line := range []struct {
			event string
			n     uint64
		}{{"came", c.Requests}, {"retried", c.Retries}, {"hedged", c.Hedges}, {"over_budget", c.Refused}, {"unanswered", c.Failed}, {"busy", c.Busy}} {
			fmt.Fprintf(w, "%s{upstream=%q,event=%q} %d\n", name, upstream, line.event, line.n)
		}
	}
	_, _ = a.site.Metrics.WriteTo(w) // fails when the client has gone
}

// drain has a server get no new requests, or get them again.
func (a *admin) drain(w http.ResponseWriter, r *http.Request, drain bool) {
	upstream, server := r.FormValue("upstream"), r.FormValue("server")
	if err := a.site.Drain(upstream, server, drain); err != nil {
		http.Error(w, err.Error()+"; want upstream and server, as GET /status has them", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// region tells which region an address is in.
func (a *admin) region(w http.ResponseWriter, r *http.Request) {
	at, err := netip.ParseAddr(r.FormValue("address"))
	if err != nil {
		http.Error(w, err.Error()+"; want address=203.0.113.7 or another one", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(located{at, a.site.Region(at)}) // fails when the client has gone
}

// close ends it, and takes its socket away, unless others keep that.
func (a *admin) close() {
	if a != nil {
		a.s.Close()
	}
}

// release ends it, and leaves the socket to the process that has it, too.
func (a *admin) release() {
	if a != nil {
		a.l.SetUnlinkOnClose(false)
		a.s.Close()
	}
}
