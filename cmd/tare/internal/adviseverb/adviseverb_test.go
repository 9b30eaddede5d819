package adviseverb

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/studies"
)

// levels are what arms show, by metric.
type levels map[string]map[string]float64

// keep keeps a run of thirty blocks that answers a question, in which arms show these levels.
func keep(t *testing.T, dir, machine string, q question, shown levels) {
	t.Helper()
	s, err := studies.Named(q.study)
	if err != nil {
		t.Fatal(err)
	}
	w, err := record.Create(filepath.Join(dir, q.study), record.Manifest{
		ID: "run-of-" + q.study, Study: *s, Seed: 1, Started: time.Now(), Env: []record.Fact{{Name: "cpu", Value: machine}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	seq := 0
	for block := range 30 {
		for arm, metrics := range shown {
			tr := record.Trial{Seq: seq, Block: block, Workload: q.workload, Arm: arm, Requests: 20_000, Steady: true, Metrics: map[string]float64{}}
			for name, v := range metrics {
				tr.Metrics[name] = v * (1 + float64(block)/1e4)
				if arm == "gin" {
					tr.Metrics[name] *= 0.99 + 0.02*float64(block%2)
				}
			}
			seq++
			if err := w.Append(tr, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Finish("cap"); err != nil {
		t.Fatal(err)
	}
}

const mib = 1 << 20

// measuredHere keeps a run of each study that advise asks but for the proxies'.
func measuredHere(t *testing.T, machine string) string {
	t.Helper()
	dir := t.TempDir()
	loop := func(ns float64) map[string]float64 { return map[string]float64{"loop_time": ns} }
	both := func(cpu, rss float64) map[string]float64 {
		return map[string]float64{"cpu_per_request": cpu, "rss_peak": rss}
	}
	keep(t, dir, machine, partNamed(router).speed, levels{
		"servemux": loop(1000), "serve": loop(500), "gin": loop(501), "chi": loop(900),
	})
	keep(t, dir, machine, partNamed(engine).speed, levels{
		"nethttp": both(10_000, 40*mib), "serve": both(5000, 20*mib), "fasthttp": both(4000, 30*mib),
	})
	keep(t, dir, machine, question{layers, "order", "loop_time"}, levels{
		"none": loop(1000), "recovery-net": loop(1010), "recovery-chi": loop(1100), "ratelimit-net": loop(1300), "ratelimit-httprate": loop(1200),
	})
	return dir
}

func partNamed(name string) part {
	all := parts()
	return all[slices.IndexFunc(all, func(p part) bool { return p.name == name })]
}

// advise returns the advice by part, from what was measured.
func advise(t *testing.T, c Command, e *evidence) map[string]Advice {
	t.Helper()
	n, err := c.needs()
	if err != nil {
		t.Fatal(err)
	}
	var s service
	if c.URL != "" {
		if err := s.ask(t.Context(), c.URL); err != nil {
			t.Fatal(err)
		}
	}
	n.learn(&s)
	by := map[string]Advice{}
	for _, a := range (&adviser{needs: n, service: &s, evidence: e}).advise() {
		by[a.Part] = a
	}
	return by
}

// gathered is what was measured in runs of a folder.
func gathered(t *testing.T, dir string) *evidence {
	t.Helper()
	e, err := gather(t.Context(), dir)
	if err != nil || len(e.broken) > 0 {
		t.Fatal(err, e.broken)
	}
	return e
}

// Each need decides: the advice for it is another than without it.
func TestNeedsDecide(t *testing.T) {
	e := gathered(t, measuredHere(t, "some CPU"))
	for name, tt := range map[string]struct {
		c    Command
		want map[string]string // choice by part
	}{
		"nothing much":          {Command{Need: []string{public}}, map[string]string{router: "ServeMux", engine: "net/http", "proxy": "none"}},
		"raw speed":             {Command{Need: []string{speed}}, map[string]string{engine: "fasthttp", router: "of fasthttp or made for it", "middlewares": "of fasthttp or made for it"}},
		"speed for handlers":    {Command{Need: []string{speed, handlers}}, map[string]string{engine: "serve", router: "serve/router"}},
		"speed over HTTP/2":     {Command{Need: []string{speed}, Protocol: []string{"http2"}}, map[string]string{engine: "serve"}},
		"speed in little":       {Command{Need: []string{speed}, Memory: "25MiB"}, map[string]string{engine: "serve"}},
		"little":                {Command{Memory: "35MiB"}, map[string]string{engine: "serve"}},
		"too little":            {Command{Memory: "1MiB"}, map[string]string{engine: "Hertz"}}, // of which nothing is known
		"known":                 {Command{Know: []string{"Chi"}}, map[string]string{router: "chi", engine: "net/http"}},
		"known and as fast":     {Command{Know: []string{"gin"}, Need: []string{speed}}, map[string]string{router: "Gin"}},
		"known and slower":      {Command{Know: []string{"chi"}, Need: []string{speed}}, map[string]string{router: "serve/router"}},
		"a proxy":               {Command{Need: []string{inFront}}, map[string]string{"proxy": "nginx"}},
		"a proxy that is known": {Command{Need: []string{inFront}, Know: []string{"haproxy"}}, map[string]string{"proxy": "HAProxy"}},
		"mesh":                  {Command{Need: []string{mesh}, Know: []string{"nginx"}}, map[string]string{"proxy": "Envoy"}},
		"set-up by annotation":  {Command{Need: []string{annotations}}, map[string]string{"proxy": "Traefik"}},
		"what no option has":    {Command{Need: []string{mesh, annotations}}, map[string]string{"proxy": "none of those known"}},
		"light layers":          {Command{Need: []string{public}}, map[string]string{"middleware: recovery": "recovery, ours on net/http", "middleware: rate limit": "rate limit in memory, go-chi/httprate"}},
	} {
		got := advise(t, tt.c, e)
		for part, want := range tt.want {
			if a := got[part]; a.Choice != want || len(a.Reasons) == 0 {
				t.Errorf("%s: %s is %q for %+v, want %q", name, part, a.Choice, a.Reasons, want)
			}
		}
	}
	for need, kinds := range map[string][]string{browsers: {"CORS", "security fields"}, accounts: {"JWT"}, public: {"rate limit", "address filter"}} {
		with, without := advise(t, Command{Need: []string{need}}, e), advise(t, Command{Need: []string{inFront}}, e)
		for _, kind := range kinds {
			if with["middleware: "+kind].Choice == "" || without["middleware: "+kind].Choice != "" {
				t.Errorf("%s: %s is %q, without %q", need, kind, with["middleware: "+kind].Choice, without["middleware: "+kind].Choice)
			}
		}
	}
}

// A reason with a figure names its run, and says if another machine made that.
func TestFiguresNameTheirRun(t *testing.T) {
	here := processor(runs.Environment(t.Context()))
	for machine, elsewhere := range map[string]bool{here: here == "", "another CPU": true} {
		got := advise(t, Command{Need: []string{speed, handlers}}, gathered(t, measuredHere(t, machine)))[router]
		i := slices.IndexFunc(got.Reasons, func(r Reason) bool { return strings.Contains(r.Says, "-50.0 % against ServeMux") })
		if i < 0 || got.Reasons[i].Run != "run-of-routers" || got.Reasons[i].Machine != machine || got.Reasons[i].Elsewhere != elsewhere {
			t.Errorf("on %q: got %+v, want −50 %% against ServeMux with run and machine", machine, got.Reasons)
		}
		if !strings.Contains(strings.Join(got.Open, "\n"), "speed of Echo, httprouter, bunrouter, gorilla/mux: `tare run --quick routers`") {
			t.Errorf("got %q, want the routers that the run did not have", got.Open)
		}
	}
}

// Without a run, advise says that no figure covers the need, and shows what is known of
// claims elsewhere.
func TestWithoutRuns(t *testing.T) {
	got := advise(t, Command{Need: []string{speed, mesh}}, gathered(t, t.TempDir()))
	for _, part := range []string{router, engine, "proxy", "middleware: recovery"} {
		if a := got[part]; a.Choice == "" || len(a.Open) == 0 {
			t.Errorf("%s: got %+v, want a choice, and what is open", part, a)
		}
	}
	e := &evidence{results: map[string]studies.Result{"P4.routers": {
		Run: "20260101-000000-tenroutes", Machine: "a CPU",
		Checks: []studies.Outcome{{Says: "unmeasured"}, {Says: "Gin serves 48,000/s", Metric: "throughput", Measured: "+3.0 %", Interval: "95 % interval +2.0 to +4.0 %",
			Rule: study.Check{Arm: "gin", Against: "servemux"}}},
	}}}
	a := &adviser{needs: &needs{set: map[string]bool{speed: true}}, service: new(service), evidence: e}
	reasons := a.choose(partNamed(router)).Reasons
	if want := (Reason{Says: "Gin serves 48,000/s", Published: "P4.routers"}); reasons[0] != want {
		t.Errorf("got %+v, want %+v", reasons[0], want)
	}
	if want := (Reason{Says: "throughput of gin against servemux +3.0 %, 95 % interval +2.0 to +4.0 %", Run: "20260101-000000-tenroutes", Machine: "a CPU", Elsewhere: true}); reasons[1] != want {
		t.Errorf("got %+v, want %+v", reasons[1], want)
	}
}

// TestFiguresSayWhoseTheyAre: a figure that was measured here, one that was measured elsewhere,
// and one that was only published each say so, in a sentence of their own.
func TestFiguresSayWhoseTheyAre(t *testing.T) {
	for _, tt := range []struct {
		r    Reason
		want string
	}{
		{Reason{Says: "Gin is known"}, "Gin is known"},
		{Reason{Says: "Gin +1 %", Run: "r1", Machine: "a CPU"}, "Gin +1 % (measured here: run r1)"},
		{Reason{Says: "Gin +1 %", Run: "r1", Machine: "a CPU", Elsewhere: true}, "Gin +1 % (measured elsewhere, a CPU: run r1)"},
		{Reason{Says: "Gin serves 48,000/s", Published: "P4.routers"}, "Gin serves 48,000/s (only published: claim P4.routers)"},
	} {
		var got strings.Builder
		for _, s := range tt.r.spans() {
			got.WriteString(s.Text)
		}
		if got.String() != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.r, got.String(), tt.want)
		}
	}
}

// What parts ask of studies, they have.
func TestQuestionsHaveAnswers(t *testing.T) {
	asked := 0
	for _, p := range parts() {
		for _, q := range []question{p.speed, p.memory} {
			s, err := studies.Named(q.study)
			if q.study == "" || err != nil && q.study == "proxies" {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			asked++
			if q.workload != "" && !slices.ContainsFunc(s.Workloads, func(w study.Workload) bool { return w.Name == q.workload }) {
				t.Errorf("%s: study %s has no workload %s", p.name, q.study, q.workload)
			}
			if _, ok := study.MetricNamed(q.metric); !ok {
				t.Errorf("%s: no metric %s", p.name, q.metric)
			}
			for _, o := range p.options {
				if o.arm != "" && !slices.ContainsFunc(s.Arms, func(a study.Arm) bool { return a.Name == o.arm }) {
					t.Errorf("%s: study %s has no arm %s", p.name, q.study, o.arm)
				}
			}
		}
	}
	if asked < 3 {
		t.Errorf("%d questions found their study, want at least 3", asked)
	}
	s, err := studies.Named(layers)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		for _, engine := range []string{onServe, "net/http"} {
			if arms := implementations(s, k.kind, engine); len(arms) == 0 || !strings.Contains(arms[0].Title, "ours on "+engine) {
				t.Errorf("%s on %s: got %d arms, want ours first", k.kind, engine, len(arms))
			}
		}
	}
}

func TestReadProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
	var s service
	if err := s.readProcess(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	seen := strings.Join(s.Seen, "\n")
	if s.now[router] != "ServeMux" || s.now[engine] != "net/http" || !strings.Contains(seen, runtime.Version()) || !strings.Contains(seen, "MiB (RSS)") {
		t.Errorf("got %+v", s)
	}
	for path, want := range map[string][2]string{
		"github.com/gin-gonic/gin":    {router, "Gin"},
		"github.com/labstack/echo/v4": {router, "Echo"},
		"github.com/valyala/fasthttp": {engine, "fasthttp"},
		"github.com/gorilla/muxed":    {router, ""},
	} {
		var s service
		s.seeModule(path, "v1.0.0")
		if got := s.now[want[0]]; got != want[1] {
			t.Errorf("%s: got the %s %q, want %q", path, want[0], got, want[1])
		}
	}
	s = service{}
	s.seeModule("google.golang.org/grpc", "v1.85.0")
	if !slices.Equal(s.needs, []string{"grpc"}) {
		t.Errorf("got the needs %v, want grpc", s.needs)
	}
	if err := s.readProcess(1 << 22); err == nil {
		t.Error("a process that there is not was read")
	}
}

func TestAskService(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "nginx/1.22.1")
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	var s service
	if err := s.ask(t.Context(), server.URL); err != nil {
		t.Fatal(err)
	}
	if s.now["proxy"] != "nginx" || !slices.Equal(s.needs, []string{"http3", browsers}) {
		t.Errorf("got %+v, want nginx, HTTP/3 and browsers", s)
	}
	got := advise(t, Command{URL: server.URL}, gathered(t, t.TempDir()))
	if a := got["proxy"]; a.Now != "nginx" || a.Choice != "nginx" {
		t.Errorf("got %+v, want the proxy that is there", a)
	}
	if got["middleware: CORS"].Choice == "" {
		t.Error("got no middlewares for browsers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for url, ctx := range map[string]context.Context{"localhost": t.Context(), "/path": t.Context(), server.URL: ctx} {
		if err := s.ask(ctx, url); err == nil {
			t.Errorf("%q was asked", url)
		}
	}
}

// The verb prints what it advises, as text and as JSON.
func TestRun(t *testing.T) {
	for asJSON, want := range map[bool]string{
		false: "router: ServeMux",
		true:  `"part": "router",`,
	} {
		var out strings.Builder
		c := Command{Need: []string{public}, HomeFlag: runs.HomeFlag{Dir: t.TempDir()}, JSON: asJSON}
		if err := c.Run(t.Context(), &cli.Terminal{Out: &out, Err: io.Discard, Width: 100}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || asJSON != json.Valid([]byte(out.String())) {
			t.Errorf("JSON %t: got %s, want %s", asJSON, &out, want)
		}
	}
}

func TestWrongWords(t *testing.T) {
	for _, tt := range []struct {
		c    Command
		want string
	}{
		{Command{}, "nothing to advise on"},
		{Command{Need: []string{"sped"}}, `--need "sped" is not known`},
		{Command{Protocol: []string{"h2"}}, `--protocol "h2" is not known`},
		{Command{Know: []string{"rails"}}, `--know "rails" is not known`},
		{Command{Memory: "64ms"}, `--memory "64ms"`},
		{Command{Memory: "0MiB"}, `--memory "0MiB"`},
	} {
		err := tt.c.Run(t.Context(), &cli.Terminal{Out: io.Discard, Err: io.Discard})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.c, err, tt.want)
		}
	}
}

func TestPageWidths(t *testing.T) {
	n := &needs{words: []string{speed}, know: []string{"gin"}, memory: 64 * mib}
	all := []Advice{{Part: "router", Choice: "Gin", Now: "chi", Reasons: []Reason{{Says: "Gin measured best", Run: "20260101-000000-routers", Machine: "a CPU", Elsewhere: true}}, Open: []string{"speed of Echo"}}}
	clitest.CheckPage(t, page(n, &service{Seen: []string{"process 7 takes 12.0 MiB (RSS)"}}, all),
		"router: Gin", "now: chi", "Gin measured best", "no figure: speed of Echo", "64.0 MiB")
}

// TestPageLayers says once what covers the middlewares of which there is no figure.
func TestPageLayers(t *testing.T) {
	var out strings.Builder
	c := Command{Need: []string{browsers}, HomeFlag: runs.HomeFlag{Dir: t.TempDir()}}
	if err := c.Run(t.Context(), &cli.Terminal{Out: &out, Err: io.Discard, Width: 1000}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "tare run --quick weights"); n != 1 {
		t.Errorf("%d lines name the study, want one:\n%s", n, &out)
	}
	for _, want := range []string{"recovery: recovery, ours on net/http; a panic must not end the process", "no figure: recovery, limits", "security fields, CORS: cost: `tare run"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}
