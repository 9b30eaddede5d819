package load_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tarehq/tare/internal/forward"
	"github.com/tarehq/tare/load"
)

// Every engine and protocol goes through a proxy: HTTP/1.1 without TLS by naming whole
// URLs, the others by tunnels, whose credentials the server does not see.
func TestProxy(t *testing.T) {
	for i, p := range protocols {
		if p.protocol == load.HTTP3 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			via := forward.Start(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:s:3cret")))
			var wrong atomic.Pointer[http.Request]
			o, server := serve(t, i, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/a b" || r.Header.Get("Proxy-Authorization") != "" {
					wrong.Store(r)
				}
				io.WriteString(w, "ok")
			}))
			o.Targets[0].URL = server.URL + "/a%20b"
			o.Engine = load.Auto // event loops open no tunnels
			o.Proxy = strings.Replace(via.URL, "://", "://ada:s%3A3cret@", 1)
			o.Connections, o.Requests = 4, 100
			r := run(t, context.Background(), o)
			checkSums(t, r)
			if r.Counts.Status[2] != 100 || wrong.Load() != nil {
				t.Errorf("got %+v, a request as %+v; want 100 answers, for the path asked for, without the proxy's credentials", r.Counts, wrong.Load())
			}
			forwarded, tunnels := via.Forwarded.Load(), via.Tunnels.Load()
			if plain := !p.tls && p.protocol == load.HTTP1; plain && (forwarded != 100 || tunnels != 0) || !plain && (forwarded != 0 || uint64(tunnels) != r.Opened) {
				t.Errorf("the proxy forwarded %d requests and opened %d tunnels for %d connections", forwarded, tunnels, r.Opened)
			}
			if refused := via.Refused.Load(); refused != 0 {
				t.Errorf("the proxy refused %d requests", refused)
			}
		})
	}
}

// Why nothing comes through a proxy is said, with a remedy.
func TestProxyFails(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
	for i, p := range protocols {
		if p.protocol == load.HTTP3 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			o, server := serve(t, i, ok)
			o.Connections, o.Requests, o.Engine = 1, 3, load.Auto
			tunnels := p.tls || p.protocol != load.HTTP1

			o.Proxy = forward.Start(t, "Basic x").URL
			r, err := load.Run(context.Background(), o)
			text := said(r, err)
			if want := "it wants a name and password"; !strings.Contains(text, want) || !strings.Contains(text, "407") || r.Counts.Status[2] > 0 {
				t.Errorf("407: got %+v and %q, want %q", r.Counts, text, want)
			}
			if tunnels != (r.Counts.Refused == 3) || !tunnels && r.Counts.Status[4] != 3 {
				t.Errorf("407: got %+v, want no tunnels, or 3 answers", r.Counts)
			}

			o.Proxy = forward.Start(t, "").URL
			server.Close() // nothing listens there now
			if r, err := load.Run(context.Background(), o); tunnels && !strings.Contains(errorText(err), "opening a tunnel to "+server.Listener.Addr().String()+": the proxy answered 502") ||
				!tunnels && r.Counts.Status[5] != 3 {
				t.Errorf("no server: got %+v, %v; want what the proxy answered", r.Counts, err)
			}

			o.Proxy = server.Listener.Addr().String()
			if _, err := load.Run(context.Background(), o); !strings.Contains(errorText(err), "connecting to the proxy "+o.Proxy+": connection refused") {
				t.Errorf("no proxy: got %v, want that nothing listens", err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// said is all that a run says went wrong.
func said(r *load.Result, err error) string {
	text := errorText(err)
	if r != nil {
		for _, w := range r.Warnings {
			text += "\n" + w.Error()
		}
	}
	return text
}
