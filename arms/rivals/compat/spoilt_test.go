package compat_test

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/tarehq/tare/arms/rivals/compat"
)

// spoilt are net/http's server with something spoilt, to see that probes notice.
func spoilt() []compat.Server {
	spoil := func(name string, by func(http.Handler) http.HandlerFunc) compat.Server {
		return compat.Server{Name: name, Title: name, Serve: func(l net.Listener, h http.Handler) error {
			return (&http.Server{Handler: by(h)}).Serve(l)
		}}
	}
	return []compat.Server{
		spoil("failing", failing), spoil("dying", dying), spoil("buffering", buffering),
		spoil("detaching", detaching), spoil("mixing", mixing),
	}
}

func failing(http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of order", http.StatusBadGateway) }
}

// dying ends the process, as a panic does that nobody can recover from.
func dying(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			panic("out of order")
		}()
		<-done
	}
}

// buffering sends answers when they are whole, and hides all else of a
// connection.
func buffering(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		whole := httptest.NewRecorder()
		h.ServeHTTP(struct{ http.ResponseWriter }{whole}, r)
		maps.Copy(w.Header(), whole.Header())
		w.WriteHeader(whole.Code)
		w.Write(whole.Body.Bytes())
	}
}

// detaching gives handlers a context that is nobody's.
func detaching(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r.WithContext(context.Background())) }
}

// mixing gives all handlers the same request and header.
func mixing(h http.Handler) http.HandlerFunc {
	var mu sync.Mutex
	shared := http.Request{Header: http.Header{}}
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		header := shared.Header
		clear(header)
		maps.Copy(header, r.Header)
		shared = *r
		shared.Header = header
		mu.Unlock()
		h.ServeHTTP(w, &shared)
	}
}

// What fails is noticed by every probe, and what one promise is broken by those
// that are for it.
func TestProbesNotice(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts some hundred processes")
	}
	tests := map[string]map[string]compat.Verdict{
		"buffering": {
			"websocket.Upgrader": compat.Breaks, "ReverseProxy, upgrade": compat.Breaks, "Hijacker": compat.Breaks,
			"ReverseProxy, streaming": compat.Degrades, "server-sent events": compat.Degrades, "full duplex": compat.Breaks,
			"read deadline": compat.Degrades, "103 Early Hints": compat.Breaks, "cors": compat.Works, "httprouter": compat.Works,
			"chi, Throttle": compat.Works, "request kept": compat.Works,
		},
		"detaching": {
			"context, client gone": compat.Degrades, "context, request over": compat.Degrades, "context keys": compat.Degrades,
			"otelhttp": compat.Works, "websocket.Upgrader": compat.Works,
		},
		"mixing": {
			"request kept": compat.Breaks, "TimeoutHandler": compat.Breaks, "strings kept": compat.Works,
			"chi, RequestID": compat.Works, "FileServer": compat.Works,
		},
	}
	all := spoilt()
	for _, name := range []string{"failing", "dying"} {
		i := slices.IndexFunc(all, func(s compat.Server) bool { return s.Name == name })
		for _, r := range find(t, all[i:i+1], compat.Probes(), 1).Rows {
			if o := r.Outcomes[0]; o.Verdict == compat.Works || len(o.Findings) == 0 {
				t.Errorf("%s: got %+v on a %s server", r.Probe.Name, o, name)
			}
		}
	}
	for name, want := range tests {
		i := slices.IndexFunc(all, func(s compat.Server) bool { return s.Name == name })
		probes := slices.DeleteFunc(compat.Probes(), func(p compat.Probe) bool {
			_, wanted := want[p.Name]
			return !wanted
		})
		if len(probes) != len(want) {
			t.Errorf("%s: %d probes are there, want %d", name, len(probes), len(want))
		}
		for _, r := range find(t, all[i:i+1], probes, 1).Rows {
			if got := r.Outcomes[0]; got.Verdict != want[r.Probe.Name] {
				t.Errorf("%s on a %s server: got %+v, want %s", r.Probe.Name, name, got, want[r.Probe.Name])
			}
		}
	}
}

func TestOutcomeKeepsTheWorst(t *testing.T) {
	lost := compat.Finding{Verdict: compat.Degrades, Note: "lost"}
	wrong := compat.Finding{Verdict: compat.Breaks, Note: "wrong"}
	tests := []struct {
		trials  [][]compat.Finding
		verdict compat.Verdict
		want    []compat.Finding
	}{
		{[][]compat.Finding{nil, nil}, compat.Works, nil},
		{[][]compat.Finding{nil, {lost}, nil, {lost}}, compat.Degrades, []compat.Finding{lost}},
		{[][]compat.Finding{{lost}, {lost, wrong}, nil}, compat.Breaks, []compat.Finding{wrong, lost}},
	}
	for _, tt := range tests {
		var o compat.Outcome
		for _, found := range tt.trials {
			o.Add(found...)
		}
		if o.Verdict != tt.verdict || !slices.Equal(o.Findings, tt.want) {
			t.Errorf("trials %v: got %+v, want %s with %v", tt.trials, o, tt.verdict, tt.want)
		}
	}
}
