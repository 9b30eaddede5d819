package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tarehq/tare/arms/layers/plan"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/serve/chain"
)

func TestEveryServerAnswersAlike(t *testing.T) {
	for _, engine := range []engines.Engine{engines.NetHTTP, engines.Serve, engines.ServeReuse} {
		for _, by := range []string{"nested", "chain"} {
			for _, depth := range []plan.Depth{0, 1, 50} {
				h, err := handler(by, depth)
				if err != nil {
					t.Fatal(err)
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() { defer close(ended); _ = engine.Run(h)(l) }()
				client := &http.Client{Transport: &http.Transport{}}
				for _, path := range []string{plan.Noop, plan.Value, plan.Record, plan.Value} {
					res, err := client.Get("http://" + l.Addr().String() + path)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err != nil || string(body) != string(plan.Body()) || res.Header.Get("Content-Type") != plan.JSON {
						t.Errorf("%s, %d layers by %s, %s: got %s, %v, %d bytes, %v", engine, depth, by, path, res.Status, res.Header, len(body), err)
					}
				}
				client.CloseIdleConnections()
				l.Close()
				<-ended
			}
		}
	}
	if _, err := handler("magic", 1); err == nil {
		t.Error("by magic: got no error")
	}
}

// The chain allocates nothing beside what the engine allocates for a request, at
// any depth.
func TestLoopContext(t *testing.T) {
	if engines.NetHTTP.LoopContext() != nil {
		t.Error("http.Server: got a context, want the ordinary one")
	}
	for _, engine := range []engines.Engine{engines.Serve, engines.ServeReuse} {
		for _, path := range []string{plan.Noop, plan.Value, plan.Record} {
			for _, depth := range []plan.Depth{0, 10, 16, 17, 50} {
				if got := loopAllocs(t, engine, path, depth); got != 0 {
					t.Errorf("%s%s, %d layers: got %v allocations, want none", engine, path, depth, got)
				}
			}
		}
	}
}

func loopAllocs(t testing.TB, engine engines.Engine, path string, depth plan.Depth) float64 {
	t.Helper()
	h, err := handler("chain", depth)
	if err != nil {
		t.Fatal(err)
	}
	ctx, renew := engine.LoopContext()()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	w := &discard{http.Header{}, ctx}
	return testing.AllocsPerRun(100, func() {
		renew()
		h.ServeHTTP(w, r)
	})
}

type discard struct {
	header http.Header
	ctx    context.Context // of the request, slotted or not
}

func (d *discard) ChainSlot() *chain.Slot {
	if c, ok := d.ctx.(interface{ ChainSlot() *chain.Slot }); ok {
		return c.ChainSlot()
	}
	return nil
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkLayers is the study's loop without the study.
func BenchmarkLayers(b *testing.B) {
	for _, path := range []string{plan.Noop, plan.Value, plan.Record} {
		for _, depth := range []plan.Depth{0, 10, 50} {
			for _, c := range []struct {
				by     string
				engine engines.Engine
			}{{"nested", engines.NetHTTP}, {"chain", engines.Serve}, {"chain", engines.ServeReuse}} {
				b.Run(fmt.Sprintf("path=%s/depth=%d/by=%s/server=%s", path[1:], depth, c.by, c.engine), func(b *testing.B) {
					h, err := handler(c.by, depth)
					if err != nil {
						b.Fatal(err)
					}
					ctx, renew := context.Context(b.Context()), func() {}
					if newContext := c.engine.LoopContext(); newContext != nil {
						ctx, renew = newContext()
					}
					r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
					w := &discard{http.Header{}, ctx}
					b.ReportAllocs()
					for b.Loop() {
						renew()
						h.ServeHTTP(w, r)
					}
				})
			}
		}
	}
}
