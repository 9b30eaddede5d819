//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// changed is the file after so many changes. Each one differs from the one before in the
// weights and servers of an upstream; some differ in its settings, so that another takes its
// place, in the upstreams that there are, in routes, and in middlewares.
func changed(at string, services []string, n int) map[string]any {
	var servers []any
	for i, s := range services {
		if (n+i)%len(services) != 0 {
			servers = append(servers, map[string]any{"address": s, "weight": (n + 3*i) % 10 * (i % 2), "zone": fmt.Sprint("z", i)})
		}
	}
	servers[0].(map[string]any)["weight"] = 1 + n%9
	up := map[string]any{"servers": servers, "balance": []string{"least_requests", "round_robin", "peak_ewma", "consistent_hash"}[n/40%4]}
	if n%20 > 9 {
		up["try_timeout"] = "6s"
	}
	f := map[string]any{
		"grace": "2s", "listen": []any{map[string]any{"address": at}}, "upstreams": map[string]any{"x": up},
		"routes": []any{map[string]any{"path": "/", "upstream": "x"}},
	}
	if n%3 == 0 {
		f["upstreams"].(map[string]any)["y"] = map[string]any{"servers": servers[:1]}
		f["routes"] = []any{
			map[string]any{"path": "/", "header": map[string]string{"X-Beta": "1"}, "upstream": "y"},
			map[string]any{"path": "/", "split": []any{map[string]any{"upstream": "x", "weight": n % 5}, map[string]any{"upstream": "y", "weight": 1}}},
		}
	}
	if n%7 < 3 {
		f["middlewares"] = []any{map[string]any{"requestid": map[string]any{}}, map[string]any{"limit": map[string]any{"body": 1 << 20}}}
	}
	return f
}

// TestThousandChanges has the file change 1,000 times under a load whose requests nobody
// repeats, and none fail. An upgraded connection lives through all of it.
func TestThousandChanges(t *testing.T) {
	const changes = 1000
	at := freeAddress(t)
	services := []string{echo(t), echo(t), echo(t), echo(t)}
	g := run(t)
	give := func(n int) {
		t.Helper()
		text, err := json.Marshal(changed(at, services, n))
		if err != nil {
			t.Fatal(err)
		}
		if got := g.give(t, string(text)); len(got.Problems) > 0 {
			t.Fatalf("%s\n%v", text, got.Problems)
		}
	}
	give(0)
	ws := upgrade(t, at)
	end := load(at)
	begun := time.Now()
	for n := range changes {
		give(1 + n)
		time.Sleep(max(0, time.Duration(n)*5*time.Millisecond-time.Since(begun)))
	}
	took := time.Since(begun)
	n, failed := end()
	if failed != nil || n < changes {
		t.Fatalf("%d requests, failed: %v", n, failed)
	}
	t.Logf("%d changes of weights, upstreams and files in %.1f s, %d requests, 0 failed", changes, took.Seconds(), n)
	if got, err := ws.say("still there"); got != "still there\n" || err != nil {
		t.Errorf("the upgraded connection got %q, %v", got, err)
	}
	ws.Close()
	http.DefaultClient.CloseIdleConnections()
	g.end(t)
}
