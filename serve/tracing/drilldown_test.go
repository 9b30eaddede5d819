package tracing_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/middleware/metrics/remotewrite"
	"github.com/tarehq/tare/serve/tracing"
)

// cause is a fault planted in one endpoint of a shop's two services.
type cause struct {
	name                   string // of the shop
	service, method, route string
	slow                   bool // it takes long; else every second answer is a 503
}

// causes: the last shop has none.
var causes = []cause{
	{"failing-put", "stock", "PUT", "/stock/{id}", false},
	{"failing-get", "orders", "GET", "/orders/{id}", false},
	{"slow-get", "orders", "GET", "/orders/{id}", true},
	{"slow-put", "stock", "PUT", "/stock/{id}", true},
	{"healthy", "", "", "", false},
}

// endpoints are what each service of a shop has.
var endpoints = map[string][][2]string{
	"orders": {{"GET", "/orders/{id}"}, {"POST", "/orders/{id}"}, {"GET", "/customers/{id}"}},
	"stock":  {{"GET", "/stock/{id}"}, {"PUT", "/stock/{id}"}, {"GET", "/places/{id}"}},
}

const (
	each    = 20                    // requests an endpoint
	tooLong = 50 * time.Millisecond // for an answer
	stalls  = 3 * tooLong           // the slow ones
)

// open returns a service with the cause in it.
func (c cause) open(service string) *observed {
	mux := http.NewServeMux()
	for _, e := range endpoints[service] {
		bad := c.service == service && c.method == e[0] && c.route == e[1]
		mux.HandleFunc(e[0]+" "+e[1], func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.PathValue("id"))
			switch {
			case bad && c.slow:
				time.Sleep(stalls)
			case bad && n%2 == 0:
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
	}
	return observe(c.name+"-"+service, "tlm", true, tracing.Options{Sampler: always}, mux)
}

// ask sends each endpoint of a service its requests.
func (s *observed) ask(service string) {
	var all sync.WaitGroup
	for _, e := range endpoints[service] {
		for i := range each {
			all.Go(func() {
				r := httptest.NewRequest(e[0], strings.ReplaceAll(e[1], "{id}", strconv.Itoa(i)), nil)
				s.handler.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
	}
	all.Wait()
}

// prometheus is a server that scrapes, and takes remote writes.
type prometheus struct{ url string }

// startPrometheus starts it to the end of the test, or skips the test.
func startPrometheus(t *testing.T, targets []string) prometheus {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skipf("SKIPPED: PromQL on what was measured: %v (Debian package prometheus)", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, dir := l.Addr().String(), t.TempDir()
	l.Close()
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {scrape_interval: 500ms, scrape_timeout: 500ms}\nscrape_configs:\n- job_name: shops\n  static_configs: [{targets: ['" + strings.Join(targets, "', '") + "']}]\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--web.enable-remote-write-receiver", "--enable-feature=exemplar-storage,native-histograms")
	cmd.Stderr = &told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	p := prometheus{"http://" + addr}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get(p.url + "/-/ready")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return p
			}
		}
		select {
		case <-ended:
			t.Fatalf("Prometheus ended:\n%s", &told)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("Prometheus is not ready after a minute")
		}
	}
}

// get decodes the data of an answer.
func (p prometheus) get(t *testing.T, path string, values url.Values, data any) {
	t.Helper()
	res, err := http.Get(p.url + path + "?" + values.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := struct {
		Status string
		Data   any
	}{Data: data}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %v\n%s", path, values, err, text)
	}
}

// found is one element of a vector.
type found struct {
	labels map[string]string
	value  float64
}

func (p prometheus) query(t *testing.T, promql string) []found {
	t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	p.get(t, "/api/v1/query", url.Values{"query": {promql}}, &data)
	var all []found
	for _, r := range data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found{r.Metric, v})
	}
	return all
}

// question is what somebody asks who does not know the cause: a query with %[1]s for the
// label to tell apart by and %[2]s for what is known, and the value that is too much.
type question struct {
	promql  string
	tooMuch float64
}

var (
	failures = question{`topk(1, sum by (%[1]s) (http_server_request_duration_seconds_count{%[2]s,http_response_status_code=~"5.."})
		/ sum by (%[1]s) (http_server_request_duration_seconds_count{%[2]s}))`, 0.05}
	delays = question{`topk(1, histogram_quantile(0.9, sum by (%[1]s, le) (http_server_request_duration_seconds_bucket{%[2]s})))`, tooLong.Seconds()}
)

// drill asks label by label for the worst, within what it has found so far, as long as
// the worst is bad. It returns what it has found and the selector of that.
func (p prometheus) drill(t *testing.T, shop string, q question) (path []string, selector string) {
	t.Helper()
	selector = fmt.Sprintf(`service_name=~"%s-.*"`, shop)
	for _, label := range []string{"service_name", "http_route", "http_request_method", "http_response_status_code"} {
		worst := p.query(t, fmt.Sprintf(q.promql, label, selector))
		if len(worst) == 0 || !(worst[0].value > q.tooMuch) {
			break
		}
		path = append(path, worst[0].labels[label])
		selector += fmt.Sprintf(`,%s="%s"`, label, worst[0].labels[label])
	}
	return path, selector
}

// P5.drilldown: by counts, durations and failures by service, endpoint, method and status,
// PromQL on a real Prometheus leads to each planted cause and to nothing in the shop that
// has none. The services orders are scraped, the services stock send by remote write.
func TestDrillDown(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts Prometheus")
	}
	var targets, senders []string
	shops := map[string]*observed{}
	for _, c := range causes {
		for service := range endpoints {
			s := c.open(service)
			s.ask(service)
			shops[c.name+"-"+service] = s
			if service == "stock" {
				senders = append(senders, c.name+"-"+service)
				continue
			}
			mux := http.NewServeMux()
			mux.Handle("/metrics", s.metrics)
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			targets = append(targets, strings.TrimPrefix(server.URL, "http://"))
		}
	}
	p := startPrometheus(t, targets)
	for _, name := range senders {
		sender := must(remotewrite.New(remotewrite.Options{URL: p.url + "/api/v1/write", Metrics: shops[name].metrics, Labels: map[string]string{"job": "shops"}}))
		if err := sender.Send(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.await(t, shops)
	for _, c := range causes {
		for _, q := range []question{failures, delays} {
			var want []string
			switch {
			case c.service == "" || c.slow != (q == delays):
			case c.slow:
				want = []string{c.name + "-" + c.service, c.route, c.method, "200"}
			default:
				want = []string{c.name + "-" + c.service, c.route, c.method, "503"}
			}
			got, selector := p.drill(t, c.name, q)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %.40s…: got %q, want %q", c.name, q.promql, got, want)
			}
			if c.slow && q == delays && c.service == "orders" {
				p.follow(t, selector, shops[c.name+"-"+c.service])
			}
		}
	}
	p.showDashboard(t)
	if runtime := p.query(t, `count by (service_name) (go_sched_latencies_seconds_bucket{le="+Inf"})`); len(runtime) != len(shops) {
		t.Errorf("the runtime's metrics are of %v, want them of all %d services", runtime, len(shops))
	}
}

// showDashboard asks what each panel of the dashboard of package metrics asks.
func (p prometheus) showDashboard(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../middleware/metrics/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("%d panels: %v", len(dashboard.Panels), err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			promql := strings.NewReplacer("$service", "(failing-put|slow-get|failing-get)-orders", "$__rate_interval", "1m").Replace(target.Expr)
			shown := 0
			for deadline := time.Now().Add(20 * time.Second); shown == 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				shown = len(p.query(t, promql)) // a rate needs two scrapes
			}
			if shown == 0 {
				t.Errorf("%s shows nothing by %s", panel.Title, promql)
			}
		}
	}
}

// TestNativeHistogram has Prometheus scrape a native histogram. PromQL finds the median in it.
func TestNativeHistogram(t *testing.T) {
	const requests, took = 20, 20 * time.Millisecond
	m := must(metrics.New(metrics.Options{Native: true, NoRuntime: true}))
	h := m.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(took) }))
	var all sync.WaitGroup
	for range requests {
		all.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) })
	}
	all.Wait()
	page := httptest.NewServer(m)
	defer page.Close()
	p := startPrometheus(t, []string{strings.TrimPrefix(page.URL, "http://")})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		count := p.query(t, "histogram_count(http_server_request_duration_seconds)")
		if len(count) == 1 && count[0].value == requests {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: %v, want one histogram of %d requests", count, requests)
		}
	}
	const widest = 1.1 // of a bucket; how much longer than asked time.Sleep takes is not known
	median := p.query(t, "histogram_quantile(0.5, http_server_request_duration_seconds)")
	if len(median) != 1 || median[0].value < took.Seconds()/widest || median[0].value > 1000*took.Seconds() {
		t.Errorf("the median is %v, want %v or more", median, took.Seconds())
	}
}

// await waits until all requests have been counted there.
func (p prometheus) await(t *testing.T, shops map[string]*observed) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		counted := p.query(t, "sum by (service_name) (http_server_request_duration_seconds_count)")
		complete := 0
		for _, f := range counted {
			if f.value == 3*each {
				complete++
			}
		}
		if complete == len(shops) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: %v, want %d requests of each of %d services", counted, 3*each, len(shops))
		}
	}
}

// follow goes from the exemplars of slow buckets to spans and lines of slow requests.
func (p prometheus) follow(t *testing.T, selector string, s *observed) {
	t.Helper()
	var data []struct {
		Exemplars []struct {
			Labels map[string]string
			Value  string
		}
	}
	now := time.Now()
	p.get(t, "/api/v1/query_exemplars", url.Values{
		"query": {"http_server_request_duration_seconds_bucket{" + selector + "}"},
		"start": {strconv.FormatInt(now.Add(-time.Hour).Unix(), 10)}, "end": {strconv.FormatInt(now.Add(time.Minute).Unix(), 10)},
	}, &data)
	lines, paths, followed := s.closeLog(t), s.paths(), 0
	for _, series := range data {
		for _, e := range series.Exemplars {
			id := e.Labels["trace_id"]
			l, seconds := lines[id], must(strconv.ParseFloat(e.Value, 64))
			if paths[id] != l.Target || !strings.HasPrefix(l.Target, "/orders/") || l.Duration < tooLong.Seconds()*1e3 || seconds < tooLong.Seconds() {
				t.Errorf("exemplar %s of %v s: the span is of %q, the line of %q, %v ms", id, seconds, paths[id], l.Target, l.Duration)
			}
			followed++
		}
	}
	if followed == 0 {
		t.Error("no exemplar is there to follow")
	}
}
