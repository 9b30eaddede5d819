package watchverb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	_ "net/http/pprof" // what is watched
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/cli/clitest"
	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/cost/watch"
	"github.com/tarehq/tare/cost/watch/ring"
	"github.com/tarehq/tare/doc"
)

// frames are a stack in a middleware or a handler.
func frames(name string, line int) []cost.Frame {
	return []cost.Frame{
		{Func: name + ".ServeHTTP", File: "/src/shop/shop.go", Line: line + 4, Decl: line},
		{Func: "net/http.serverHandler.ServeHTTP"}, {Func: "net/http.(*conn).serve"}, {Func: "runtime.goexit"},
	}
}

// interval is one of a service that spends so many ns a request in auth, and 40,000 in its
// handler.
func interval(at time.Time, build string, auth float64) *watch.Interval {
	const requests, hz = 50_000, 19
	s := watch.Seen{Build: watch.Build{Service: "shop", ID: build, Revision: "abc", Go: "go1.26.8"}, PIDs: []int{7},
		Window: cost.Window{Duration: 10 * time.Second, Requests: requests, Margin: 1000}}
	for k, ns := range []float64{auth, 40_000} {
		value := ns * requests * (1 + 0.02*rand.NormFloat64())
		s.Stacks = append(s.Stacks, cost.Stack{Frames: frames([]string{"shop/mw.(*Auth)", "shop.Orders"}[k], 10+20*k), Count: max(1, value/1e9*hz), Value: value})
		s.CPU += time.Duration(value)
	}
	b := cost.NewBill(s.Stacks, nil, s.Window)
	times := []reply.Bucket{{From: time.Millisecond, Below: time.Millisecond * 17 / 16, Count: 90}, {From: time.Second, Below: time.Second * 17 / 16, Count: 10}}
	return &watch.Interval{Begun: at, Duration: 10 * time.Second, Own: watch.Own{CPU: 0.0012, Kernel: 0.0003, Memory: 43 << 20, Hz: 19},
		Services: []watch.Service{{Name: "shop", Builds: []watch.Seen{s}, CPU: s.CPU, Bill: b, Rules: cost.Learn(s.Stacks), Answers: times}}}
}

// verb is an output of a verb that watches nothing.
func verb(t *testing.T, c *Command) (*output, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	if c.MaxOwners == 0 {
		c.MaxOwners = 50
	}
	o, err := c.open(t.Context(), &cli.Terminal{Out: &out, Err: io.Discard, Piped: true})
	if err != nil {
		t.Fatal(err)
	}
	return o, &out
}

func TestPage(t *testing.T) {
	at := time.Date(2026, 11, 26, 14, 5, 0, 0, time.Local)
	clitest.CheckPage(t, intervalPage(interval(at, "Xk3u9zPq01ab", 12_000)), "14:05:10", "Auth", "0.1 %", "43.0 MiB", "Xk3u9zPq01ab", "p99")
	clitest.CheckPage(t, intervalPage(&watch.Interval{Begun: at, Duration: time.Second}), "no service ran")
	i := interval(at, "x", 12_000)
	b := i.Services[0].Bill
	b.Items = append(b.Items, cost.Item{Owner: "gin.Recovery", Kind: cost.Middleware.String()}, cost.Item{Owner: "slog", Kind: cost.Other.String(), Self: 100})
	var out bytes.Buffer
	if err := doc.Text(&out, intervalPage(i), doc.TextOptions{Width: 100}); err != nil || strings.Contains(out.String(), "Recovery") || !strings.Contains(out.String(), "1 more owner, 100 ns together") {
		t.Errorf("want the small owner counted, and the middleware that was not seen left aside: %v\n%s", err, &out)
	}
}

// scrape asks for metrics, in a form.
func scrape(t *testing.T, url, accept string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("got %s, %v", res.Status, err)
	}
	return string(body)
}

// TestMetrics has a scrape show what all intervals come to, however often and in whatever
// form it is asked for, and lead to the profile that is kept.
func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	o, _ := verb(t, &Command{Listen: "127.0.0.1:0", Keep: dir, KeepBytes: 1 << 20, Quiet: true})
	defer o.close()
	for k := range 3 {
		if err := o.show(interval(time.Now().Add(time.Duration(k)*10*time.Second), "x", 12_000)); err != nil {
			t.Fatal(err)
		}
		scrape(t, o.export.URL(), "")
	}
	text := scrape(t, o.export.URL(), "")
	for _, want := range []string{
		"tare_requests_total{service=\"shop\"} 150000\n", "tare_watch_intervals_total 3\n", `kind="handler",cause="own"} `,
		"tare_answer_seconds_bucket{service=\"shop\",le=\"0.0025\"} 270\n", "tare_answer_seconds_bucket{service=\"shop\",le=\"+Inf\"} 300\n",
		`tare_service_info{service="shop",build="x",revision="abc",go="go1.26.8"} 1`, "tare_watch_memory_bytes 45088768\n", `tare_watch_failures_total{what="keep"} 0`,
		"# TYPE tare_owner_cpu_seconds_total counter\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	open := scrape(t, o.export.URL(), "application/openmetrics-text; version=1.0.0")
	m := regexp.MustCompile(`tare_service_cpu_seconds_total\{service="shop"\} [0-9.]+ # \{profile="([^"]+)"\} [0-9.]+ [0-9.]+\n`).FindStringSubmatch(open)
	if m == nil || !strings.Contains(open, "# TYPE tare_service_cpu_seconds counter\n") || !strings.HasSuffix(open, "# EOF\n") {
		t.Fatalf("want an exemplar, and the form of OpenMetrics:\n%s", open)
	}
	p, err := pprof.Read(strings.NewReader(scrape(t, strings.TrimSuffix(o.export.URL(), "metrics")+"profiles/"+m[1], "")))
	if err != nil || len(p.Stacks) != 2 || p.BuildID() != "x" || p.Begun().IsZero() {
		t.Errorf("got %+v, %v, want the profile that the exemplar leads to", p, err)
	}
	if html := scrape(t, strings.TrimSuffix(o.export.URL(), "metrics")+"flame/"+m[1], ""); !strings.Contains(html, "Auth") || !strings.Contains(html, "</html>") {
		t.Errorf("want a page with a flame graph, got %.200s", html)
	}
	list := scrape(t, strings.TrimSuffix(o.export.URL(), "metrics"), "")
	if n := strings.Count(list, `<a href="flame/shop/`); n != 3 || strings.Index(list, `href="flame/`+m[1]+`"`) != strings.Index(list, `href="flame/`) {
		t.Errorf("want a list of three profiles, that of the exemplar first, got %d:\n%s", n, list)
	}
	for _, path := range []string{"profiles/shop/", "profiles/shop/..%2f..%2fetc%2fpasswd", "profiles/"} {
		if res, err := http.Get(strings.TrimSuffix(o.export.URL(), "metrics") + path); err != nil || res.StatusCode != 404 {
			t.Errorf("%s: got %v, %v, want nothing", path, res.Status, err)
		}
	}
	promtool(t, text, "check", "metrics")
}

// stalled is a client that reads nothing until it is let go.
type stalled struct {
	http.ResponseWriter
	begun, let chan struct{}
	once       sync.Once
}

func (s *stalled) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.let
	return s.ResponseWriter.Write(p)
}

// TestStalled has one who asks for a flame graph and reads none of it keep nobody else from one.
func TestStalled(t *testing.T) {
	dir := t.TempDir()
	o, _ := verb(t, &Command{Keep: dir, KeepBytes: 1 << 20, Quiet: true})
	if err := errors.Join(o.show(interval(time.Now(), "x", 12_000)), o.close()); err != nil {
		t.Fatal(err)
	}
	entries, err := ring.List(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v, want one profile", entries, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	h := serveKept(root)
	ask := func() *http.Request {
		return httptest.NewRequest(http.MethodGet, "/flame/shop/"+filepath.Base(entries[0].Path), nil)
	}
	slow := &stalled{ResponseWriter: httptest.NewRecorder(), begun: make(chan struct{}), let: make(chan struct{})}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		h.ServeHTTP(slow, ask())
	}()
	defer func() {
		close(slow.let)
		<-gone
	}()
	<-slow.begun
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, ask())
		answered <- w
	}()
	select {
	case w := <-answered:
		if w.Code != 200 || !strings.Contains(w.Body.String(), "</html>") {
			t.Errorf("got %d, %.200s, want a page", w.Code, w.Body)
		}
	case <-time.After(30 * time.Second):
		t.Error("one who does not read keeps another waiting")
	}
}

// TestPodMetrics offers a service of pods, and its profiles by a name with slashes in it.
func TestPodMetrics(t *testing.T) {
	o, _ := verb(t, &Command{Listen: "127.0.0.1:0", Keep: t.TempDir(), KeepBytes: 1 << 20, Quiet: true})
	defer o.close()
	i := interval(time.Now(), "x", 12_000)
	s := &i.Services[0]
	s.Name, s.Builds[0].Service, s.Builds[0].Pods = "shop/web/server", "shop/web/server", []string{"shop/web-0"}
	if err := o.show(i); err != nil {
		t.Fatal(err)
	}
	if text, want := scrape(t, o.export.URL(), ""), `tare_service_pod_info{service="shop/web/server",build="x",pod="shop/web-0"} 1`; !strings.Contains(text, want) {
		t.Errorf("want %q in\n%s", want, text)
	}
	m := regexp.MustCompile(`tare_service_cpu_seconds_total\{service="shop/web/server"\} [0-9.]+ # \{profile="([^"]+)"\}`).FindStringSubmatch(scrape(t, o.export.URL(), "application/openmetrics-text"))
	if m == nil {
		t.Fatal("want an exemplar")
	}
	base := strings.TrimSuffix(o.export.URL(), "metrics")
	if p, err := pprof.Read(strings.NewReader(scrape(t, base+"profiles/"+m[1], ""))); err != nil || len(p.Stacks) != 2 {
		t.Errorf("got %+v, %v, want the profile that the exemplar leads to", p, err)
	}
	if html := scrape(t, base+"flame/"+m[1], ""); !strings.Contains(html, "Auth") {
		t.Errorf("want a page with a flame graph, got %.200s", html)
	}
	if link := regexp.MustCompile(`href="(flame/[^"]+)"`).FindStringSubmatch(scrape(t, base, "")); link == nil || !strings.Contains(scrape(t, base+link[1], ""), "Auth") {
		t.Errorf("want a list with a link to the flame graph, got %q", link)
	}
	clitest.CheckPage(t, intervalPage(i), "shop/web/server", "pod shop/web-0")
}

// promtool runs promtool, or skips what it would check.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skipf("SKIPPED: promtool: %v (Debian package prometheus)", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

// TestRules writes the rules, has promtool read them and holds them to what
// testdata/rules.yml says. Rules and dashboard ask for no metric that there is not.
func TestRules(t *testing.T) {
	dir := t.TempDir()
	if err := (&Command{WriteRules: dir}).Run(t.Context(), &cli.Terminal{Err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	o, _ := verb(t, &Command{Listen: "127.0.0.1:0", Quiet: true})
	defer o.close()
	if err := o.show(interval(time.Now(), "x", 12_000)); err != nil {
		t.Fatal(err)
	}
	has := scrape(t, o.export.URL(), "")
	for _, name := range []string{"tare-rules.yml", "tare-dashboard.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON", name)
		}
		asked := regexp.MustCompile(`\btare_[a-z_]+_(total|bucket|backoff|info)\b`).FindAllString(string(text), -1)
		if len(asked) < 5 {
			t.Errorf("%s asks for %q, want more: are they still found?", name, asked)
		}
		for _, metric := range asked {
			if !strings.Contains(has, "\n"+metric+"{") && !strings.Contains(has, "\n"+metric+" ") {
				t.Errorf("%s asks for %s, which there is not", name, metric)
			}
		}
	}
	promtool(t, "", "check", "rules", filepath.Join(dir, "tare-rules.yml"))
	promtool(t, "", "test", "rules", "testdata/rules.yml")
}

// TestDashboard reads the dashboard as Grafana does: each panel has a number and a place of its
// own, asks what Prometheus can read, by metrics and labels that there are, names its curves by
// labels that they have, and shows something once the metrics grow.
func TestDashboard(t *testing.T) {
	text, err := monitoring.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ X, Y, W, H int }
	var d struct {
		Title, UID    string
		SchemaVersion int
		Templating    struct{ List []struct{ Name string } }
		Panels        []struct {
			ID      int
			Title   string
			GridPos place
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil || d.UID == "" || d.SchemaVersion < 30 || len(d.Templating.List) != 2 || len(d.Panels) < 8 {
		t.Fatalf("got %+v, %v, want a dashboard of eight panels and two variables", d, err)
	}
	o, _ := verb(t, &Command{Listen: "127.0.0.1:0", Quiet: true})
	defer o.close()
	if err := o.show(interval(time.Now(), "x", 12_000)); err != nil {
		t.Fatal(err)
	}
	has := scrape(t, o.export.URL(), "")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || len(p.Targets) == 0 {
			t.Errorf("%s: number %d is another's too, or it asks nothing", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" || at[0] >= 24 {
					t.Fatalf("%s lies on %q, or beside the page", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		for _, q := range p.Targets {
			expr := strings.NewReplacer("$service", ".*", "$__rate_interval", "5m").Replace(q.Expr)
			rules = append(rules, rule{fmt.Sprintf("panel:%d:%d", p.ID, len(rules)), expr})
			kept := regexp.MustCompile(`\bby \(([a-z, ]*)\)`).FindStringSubmatch(expr)
			for _, label := range regexp.MustCompile(`\{\{(.*?)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if kept == nil || !slices.Contains(strings.Split(kept[1], ", "), label[1]) {
					t.Errorf("%s names curves by %s, which the first aggregation of %s drops", p.Title, label[1], expr)
				}
			}
			for _, metric := range regexp.MustCompile(`\btare_[a-z_]+\b`).FindAllString(expr, -1) {
				if !strings.Contains(has, "\n"+metric+"{") && !strings.Contains(has, "\n"+metric+" ") {
					t.Errorf("%s asks for %s, which there is not", p.Title, metric)
				}
			}
			for _, by := range regexp.MustCompile(`\b(?:by|on|group_left) \(([a-z, ]*)\)`).FindAllStringSubmatch(expr, -1) {
				for _, label := range strings.FieldsFunc(by[1], func(r rune) bool { return r == ',' || r == ' ' }) {
					if label != "instance" && !strings.Contains(has, label+`="`) {
						t.Errorf("%s asks by %s, which no metric has", p.Title, label)
					}
				}
			}
		}
	}
	var shows []any
	for _, r := range rules {
		shows = append(shows, map[string]any{"expr": "count(" + r.Expr + ") > bool 0", "eval_time": "20m", "exp_samples": []any{map[string]any{"labels": "{}", "value": 1}}})
	}
	promtool(t, "", "check", "rules", writeYAML(t, map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}}))
	promtool(t, "", "test", "rules", writeYAML(t, map[string]any{"evaluation_interval": "1m", "tests": []any{map[string]any{
		"interval": "1m", "input_series": growing(has), "promql_expr_test": shows}}}))
}

// growing are the series of a scrape, as if each grew by 1 a minute on one host.
func growing(scraped string) (all []any) {
	for line := range strings.Lines(scraped) {
		name, _, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case strings.Contains(line, "{"):
			name = strings.Replace(line[:strings.LastIndex(line, "} ")+1], "{", `{instance="host",`, 1)
		default:
			name += `{instance="host"}`
		}
		all = append(all, map[string]string{"series": name, "values": "1+1x30"})
	}
	return all
}

// writeYAML writes JSON, which is YAML, to a file.
func writeYAML(t *testing.T, v any) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "rules.yml")
	content, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSince keeps what is seen and finds in it what a new build made dearer.
func TestSince(t *testing.T) {
	dir := t.TempDir()
	o, _ := verb(t, &Command{Keep: dir, KeepBytes: 64 << 20, Quiet: true})
	const before, after = 60, 60 // intervals of 10 s
	now := time.Now()
	for k := range before + after {
		build, auth := "old", 12_000.0
		if k >= before {
			build, auth = "new", 20_000
		}
		if err := o.show(interval(now.Add(time.Duration(k-before-after)*10*time.Second), build, auth)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&Command{Since: time.Hour, What: []string{dir}}).Run(t.Context(), &cli.Terminal{Out: &out, Piped: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"shop", "Auth", "more a request", "with build new in place of old", now.Add(-after * 10 * time.Second).Format("15:04")} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := (&Command{Since: 3 * time.Minute, What: []string{dir}}).Run(t.Context(), &cli.Terminal{Out: &out, Piped: true}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "too little to compare") || strings.Contains(text, "Nothing changed") {
		t.Errorf("of three minutes, want that they are too few, in\n%s", text)
	}
	for _, c := range []Command{{Since: time.Hour}, {Since: time.Second, What: []string{dir}}, {Since: time.Hour, What: []string{t.TempDir()}}, {Since: time.Hour, What: []string{dir, dir}}} {
		if err := c.Run(t.Context(), &cli.Terminal{Out: io.Discard}); err == nil {
			t.Errorf("%v: no error", c.What)
		}
	}
}

// TestJoined joins the few samples of a service's intervals to profiles of a minute. Where
// requests begin or cease to be counted another begins, and where they are counted anew. What is
// left is kept once the service has gone, or tare ends.
func TestJoined(t *testing.T) {
	dir := t.TempDir()
	o, _ := verb(t, &Command{Keep: dir, KeepBytes: 1 << 20, Quiet: true})
	begun := time.Now().Truncate(time.Second)
	for k := range 12 {
		i := interval(begun.Add(time.Duration(k)*10*time.Second), "x", 12_000)
		s := &i.Services[0].Builds[0]
		for n := range s.Stacks {
			s.Stacks[n].Count = 1
		}
		if s.Counted = begun; k >= 2 {
			s.Counted = begun.Add(20 * time.Second)
		}
		switch {
		case k == 10:
			i.Services = nil
		case k >= 8:
			s.Window.Requests, s.Window.Margin, s.Counted = 0, 0, time.Time{}
		}
		if err := o.show(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	entries, err := ring.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	type kept struct {
		at, long time.Duration
		requests float64
		samples  float64
	}
	var got []kept
	for _, e := range entries {
		p, err := readProfile(e.Path)
		if err != nil {
			t.Fatal(err)
		}
		one := kept{at: e.Begun.Sub(begun), long: e.Duration}
		one.requests, _ = p.Requests()
		for _, s := range p.Stacks {
			one.samples += s.Count
		}
		if p.Duration != e.Duration || !p.Begun().Equal(e.Begun) {
			t.Errorf("the profile at %s is of %s at %s", one.at, p.Duration, p.Begun())
		}
		if counted := p.Counted(); counted.IsZero() != (one.requests == 0) || counted.After(e.Begun) {
			t.Errorf("the profile at %s has %v requests, counted at %v", one.at, one.requests, counted)
		}
		got = append(got, one)
	}
	want := []kept{{0, 20 * time.Second, 100_000, 4}, {20 * time.Second, time.Minute, 300_000, 12}, {80 * time.Second, 20 * time.Second, 0, 4}, {110 * time.Second, 10 * time.Second, 0, 2}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestWatch watches this process by its own profiles, and offers what it sees in every way.
func TestWatch(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "{}")
	}))
	defer sink.Close()
	service := httptest.NewServer(http.DefaultServeMux)
	defer service.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for x := 0; ctx.Err() == nil; x++ {
		}
	}()
	dir := t.TempDir()
	var out bytes.Buffer
	c := &Command{What: []string{service.URL}, Every: time.Second, For: 3500 * time.Millisecond, Hz: 19, Budget: 50, MaxOwners: 10, Count: true,
		Listen: "0", Flag: telemetry.Flag{OTLP: sink.URL}, RemoteWrite: sink.URL, Profiles: sink.URL, Keep: dir, KeepBytes: 1 << 20, JSON: true}
	if err := c.Run(ctx, &cli.Terminal{Out: &out, Err: io.Discard, Given: map[string]bool{}}); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(out.String()) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if lines++; lines == 2 && (len(r.Services) != 1 || r.Services[0].CPU <= 0 || r.Own.CPU <= 0 || len(r.Services[0].Items) == 0) {
			t.Errorf("got %s, want one service with its owners", line)
		}
	}
	kept, err := filepath.Glob(filepath.Join(dir, "*", "*.pb.gz"))
	mu.Lock()
	defer mu.Unlock()
	if lines < 2 || err != nil || len(kept) < 1 || asked["/v1/metrics"] < 2 || asked["/api/v1/write"] < 3 || asked["/push.v1.PusherService/Push"] < 1 {
		t.Errorf("got %d lines, %d profiles kept, %v asked", lines, len(kept), asked)
	}
}

// TestUsage refuses what cannot be meant.
func TestUsage(t *testing.T) {
	valid := Command{What: []string{"localhost:1"}, Every: time.Second, Hz: 19, Budget: 1, MaxOwners: 10, KeepBytes: 1 << 20}
	for name, spoil := range map[string]func(*Command){
		"nothing": func(c *Command) { c.What = nil }, "every": func(c *Command) { c.Every = time.Millisecond },
		"hz": func(c *Command) { c.Hz = 0 }, "budget": func(c *Command) { c.Budget = 0 }, "owners": func(c *Command) { c.MaxOwners = 0 },
		"answers": func(c *Command) { c.Answers = 99 }, "for": func(c *Command) { c.For = -1 }, "bytes": func(c *Command) { c.KeepBytes = 1 },
		"pods":  func(c *Command) { c.What, c.K8s = []string{strconv.Itoa(os.Getpid())}, true },
		"group": func(c *Command) { c.Cgroup = "/no/such" }, "quiet": func(c *Command) { c.Quiet, c.JSON = true, true },
		"both": func(c *Command) { c.WriteRules, c.Since = "x", time.Hour },
	} {
		c := valid
		spoil(&c)
		err := c.Run(t.Context(), &cli.Terminal{Out: io.Discard, Err: io.Discard})
		if f, ok := err.(*cli.Failure); !ok || f.Status != cli.ExitUsage {
			t.Errorf("%s: got %v, want wrong usage", name, err)
		}
	}
	for listen, want := range map[string]string{":9464": "127.0.0.1:9464", "9464": "127.0.0.1:9464", "0.0.0.0:1": "0.0.0.0:1", "[::]:1": "[::]:1"} {
		if got := address(listen); got != want {
			t.Errorf("%s: got %s, want %s", listen, got, want)
		}
	}
	var s size
	if err := s.UnmarshalText([]byte("256MiB")); err != nil || s != 256<<20 {
		t.Errorf("256MiB: got %d, %v", s, err)
	}
	for _, text := range []string{"", "256", "5s", "x"} {
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
