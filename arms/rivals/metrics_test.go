package rivals_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tarehq/tare/serve/middleware/metrics"
)

// TestMetricsPage has Prometheus' own parser read the page of serve/middleware/metrics, and
// its linter, that of promtool, look at the names.
func TestMetricsPage(t *testing.T) {
	m, err := metrics.New(metrics.Options{Values: []metrics.Value{
		{Name: "orders_total", Help: `a "quoted" help \ with a backslash` + "\nand a line", Counter: true, Read: func() float64 { return 7 }},
	}})
	if err != nil {
		t.Fatal(err)
	}
	statuses := []int{200, 200, 404, 500}
	for i, pattern := range []string{"GET /orders/{id}", "GET /orders/{id}", `GET /a"b\c/`, ""} {
		h := m.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = pattern
			w.WriteHeader(statuses[i])
			_, _ = w.Write([]byte("0123456789"))
		}))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	var page bytes.Buffer
	if _, err := m.WriteTo(&page); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, &page)
	}
	found := map[string]uint64{}
	for _, metric := range families["http_server_request_duration_seconds"].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "http_route" {
				found[label.GetValue()] = metric.GetHistogram().GetSampleCount()
			}
		}
	}
	if len(found) != 3 || found["/orders/{id}"] != 2 || found[`/a"b\c/`] != 1 || found[""] != 1 {
		t.Errorf("requests by route: %v", found)
	}
	if got := families["orders_total"].GetMetric(); len(got) != 1 || got[0].GetCounter().GetValue() != 7 {
		t.Errorf("orders_total: %v", got)
	}
	problems, err := promlint.New(&page).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
