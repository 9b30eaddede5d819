package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/config"
)

// admin tells on a Unix socket how the gateway fares. Who may open the socket may ask: it
// is the owner's alone.
type admin struct {
	path string
	s    http.Server
}

// state is what it tells.
type state struct {
	Upstreams map[string][]proxy.Status `json:"upstreams"`
	Tunnels   int                       `json:"tunnels"`
}

// openAdmin listens at a path; a socket that nobody listens on any more gives way.
func openAdmin(path string, site *config.Site) (*admin, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, &config.Problem{Path: "admin", Text: fmt.Sprintf("%s is in use", path)}
	}
	if fi, err := os.Stat(path); err == nil && fi.Mode().Type() == os.ModeSocket {
		_ = os.Remove(path) // else listening fails, and says why
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, &config.Problem{Path: "admin", Text: err.Error()}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(state{site.Status(), site.Tunnels()}) // fails when the client has gone
	})
	a := &admin{path: path, s: http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = a.s.Serve(l) }() // to its end
	return a, nil
}

// close ends it, and takes its socket away.
func (a *admin) close() {
	if a != nil {
		a.s.Close()
	}
}
