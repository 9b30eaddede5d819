package users_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/users"
	"github.com/tarehq/tare/load"
)

// shop answers logins at once and orders late, and one path of its own with 429.
func shop() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // of this test
		fmt.Fprintf(w, `{"token": "t-%s"}`, body)
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer t-u") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		time.Sleep(5 * time.Millisecond)
		w.WriteHeader(http.StatusCreated)
	})
	mux.HandleFunc("GET /limited", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	mux.HandleFunc("GET /broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	return mux
}

const buys = `
flows:
  - name: buy
    steps:
      - {name: login, url: /login, body: "u{{.user}}", take: {token: {json: token}}}
      - {name: order, method: POST, url: /orders, header: {Authorization: "Bearer {{.token}}"}, check: {status: [201]}}
      - {name: limited, url: /limited, check: {status: [200, 429]}}
  - name: again
    steps:
      - {name: login, url: /login, body: "u{{.user}}"}
`

// workload is one whose flow is written so.
func workload(t *testing.T, who, profile, flows string) study.Workload {
	t.Helper()
	text := "name: x\narms: [{name: a, go: ./a}, {name: b, go: ./b}]\ncontrol: a\nprimary: {metric: cpu_per_request, workload: w}\n" +
		"workloads:\n- name: w\n  targets: [{path: /}]\n"
	if profile != "" {
		text += "  profile: " + profile + "\n"
	}
	text += "  flow:\n    users: {" + who + "}" + strings.ReplaceAll(flows, "\n", "\n    ")
	s, err := study.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Workloads[0]
}

func run(t *testing.T, w study.Workload, o load.Options) *users.Result {
	t.Helper()
	srv := httptest.NewServer(shop())
	t.Cleanup(srv.Close)
	res, err := users.Run(t.Context(), users.Options{Workload: w, Base: srv.URL + "/", Load: o})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestRun tells operations apart and draws steps of one name together.
func TestRun(t *testing.T) {
	var marks, seen atomic.Int64
	res := run(t, workload(t, "arrive: 100/s", "", buys), load.Options{
		Duration: 400 * time.Millisecond, WarmUp: 100 * time.Millisecond, Slice: 40 * time.Millisecond,
		Mark:     func(begin bool) { marks.Add(map[bool]int64{true: 1, false: 10}[begin]) },
		Progress: func(s load.Snapshot) { seen.Store(s.Response.Quantile(.5)) },
	})
	if marks.Load() != 11 {
		t.Errorf("the marks add up to %d, want one of each kind", marks.Load())
	}
	if p50 := seen.Load(); p50 <= 0 {
		t.Errorf("the last median shown is %d", p50)
	}
	var names []string
	m := map[string]float64{}
	res.Metrics(m)
	for _, op := range res.Operations {
		names = append(names, op.Name)
		c := op.Counts
		if c.Scheduled == 0 || c.Answered() != c.Scheduled || op.Response.Count() != c.Answered() || len(op.Causes) > 0 || m[op.Name+"/errors"] != 0 {
			t.Errorf("%s: %+v, %v, want all answered", op.Name, c, op.Causes)
		}
	}
	if want := []string{"login", "order", "limited"}; !slices.Equal(names, want) {
		t.Fatalf("got the operations %q, want %q", names, want)
	}
	if login, order := res.Operations[0].Counts.Scheduled, res.Operations[1].Counts.Scheduled; login <= order || login != 40 && login != 41 {
		t.Errorf("%d logins and %d orders, want 40 logins and fewer orders", login, order)
	}
	if m["limited/status_4xx"] != 1 || m["order/status_4xx"] != 0 || m["status_4xx"] <= 0 || m["order/relative_mean"] <= 1 || m["login/relative_mean"] >= 1 {
		t.Errorf("got %v, want limited refused throughout, and orders slower than logins", m)
	}
	if res.Window != 400*time.Millisecond || res.Within == 0 || res.Within > res.Counts.Answered() || res.Throughput() <= 0 || res.Varies || len(res.Faults) > 0 {
		t.Errorf("window %v, %d of %d answered within, %v/s, varies: %t, faults %q", res.Window, res.Within, res.Counts.Answered(), res.Throughput(), res.Varies, res.Faults)
	}
	var answered uint64
	for _, s := range res.Series {
		answered += s.Answered
		if s.At >= res.Window {
			t.Errorf("a slice begins at %v, after the window", s.At)
		}
	}
	if answered != res.Counts.Answered() {
		t.Errorf("the series has %d answers, want %d", answered, res.Counts.Answered())
	}
}

// TestProfiles stretches each profile to the measured part.
func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		profile string
		least   uint64 // users who arrive
		most    uint64
		varies  bool
	}{
		{"smoke", 1, 1, false}, // one a second
		{"pressure", 24, 26, false},
		{"stress", 61, 64, true}, // from the rate to four times it: 2.5 times on average
		{"spike", 49, 51, true},  // 30 and 50 s at the rate, 10 s at ten times it: double on average
		{"soak", 24, 26, false},
		{"breakpoint", 92, 95, true}, // 1, 2, 4 and 8 times, a quarter each: 3.75 times on average
	} {
		one := "\nflows: [{name: f, steps: [{name: login, url: /login, body: x}]}]\n"
		res := run(t, workload(t, "arrive: 50/s", c.profile, one), load.Options{Duration: 500 * time.Millisecond})
		if n := res.Counts.Scheduled; n < c.least || n > c.most || res.Varies != c.varies {
			t.Errorf("%s: %d requests, varies: %t, want %d to %d, %t", c.profile, n, res.Varies, c.least, c.most, c.varies)
		}
	}
}

// TestFailures says why a load was not what was asked for, and what went wrong.
func TestFailures(t *testing.T) {
	broken := "\nflows: [{name: f, steps: [{name: one, url: /broken}]}]\n"
	res := run(t, workload(t, "arrive: 50/s", "", broken), load.Options{Duration: 200 * time.Millisecond})
	if op := res.Operations[0]; op.Counts.Unverified != op.Counts.Scheduled || len(op.Causes) != 1 || !strings.Contains(op.Causes[0], "502") {
		t.Errorf("got %+v, %q, want all wrong, with status 502 as the cause", op.Counts, op.Causes)
	}
	slow := "\nflows: [{name: f, steps: [{name: one, url: /orders, method: POST, header: {Authorization: Bearer t-u}}]}]\n"
	res = run(t, workload(t, "arrive: 1000/s, most: 1", "", slow), load.Options{Duration: 200 * time.Millisecond})
	if len(res.Faults) != 1 || !strings.Contains(res.Faults[0], "turned away") {
		t.Errorf("got the faults %q, want that users were turned away", res.Faults)
	}
	none := workload(t, "arrive: 0.1/s", "", slow)
	res = run(t, none, load.Options{Duration: 50 * time.Millisecond, WarmUp: 20 * time.Millisecond})
	if len(res.Faults) != 1 || !strings.Contains(res.Faults[0], "nobody arrived") {
		t.Errorf("got the faults %q, want that nobody arrived", res.Faults)
	}
	setup := workload(t, "count: 1", "", "\nsetup: [{url: /broken}]"+slow)
	srv := httptest.NewServer(shop())
	defer srv.Close()
	res, err := users.Run(t.Context(), users.Options{Workload: setup, Base: srv.URL, Load: load.Options{Duration: time.Second}})
	if err == nil || !strings.Contains(err.Error(), "set-up") || res == nil || res.Result == nil || res.Counts.Scheduled != 0 {
		t.Errorf("got %+v, %v, want an empty result and that the set-up failed", res, err)
	}
	feed := workload(t, "count: 1", "", slow)
	feed.Flow.Says = []byte(strings.Replace(string(feed.Flow.Says), `{`, `{"feed": "none.csv", `, 1))
	_, err = users.Run(t.Context(), users.Options{Workload: feed, Study: filepath.Join("studies", "x.yaml"), Base: srv.URL})
	if err == nil || !strings.Contains(err.Error(), filepath.Join("studies", "none.csv")) {
		t.Errorf("got %v, want an error about the feed beside the study", err)
	}
}
