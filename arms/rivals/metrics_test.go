package rivals_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
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

// asksForNative is what Prometheus sends where native histograms are enabled.
const asksForNative = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6," +
	"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"

// TestNativeHistograms has native histograms be those of Prometheus' own library of the same
// durations, and the rest of the page be there.
func TestNativeHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := metrics.New(metrics.Options{Native: true, Service: "shop", Trace: func(*http.Request) string { return "0af7651916cd43dd8448eb211c80319c" }})
		if err != nil {
			t.Fatal(err)
		}
		theirs := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "theirs", NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: math.Exp2(-20)})
		durations := []time.Duration{0, 500, 953, 954, time.Microsecond, time.Millisecond, time.Second, time.Second + 1, 2 * time.Hour}
		for range 100 {
			durations = append(durations, time.Duration(rand.ExpFloat64()*float64(20*time.Millisecond)))
		}
		for _, d := range durations {
			h := m.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(d) }))
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			theirs.Observe(d.Seconds())
		}
		families := readProto(t, m)
		ours := families["http_server_request_duration_seconds"].GetMetric()
		want := new(dto.Metric)
		if err := theirs.Write(want); err != nil {
			t.Fatal(err)
		}
		if len(ours) != 1 || len(ours[0].GetLabel()) != 4 {
			t.Fatalf("got %v, want one series with four labels", ours)
		}
		got, of := ours[0].GetHistogram(), want.GetHistogram()
		if !maps.Equal(bucketsOf(got), bucketsOf(of)) || got.GetSchema() != of.GetSchema() || got.GetZeroCount() != of.GetZeroCount() ||
			got.GetZeroThreshold() != of.GetZeroThreshold() || got.GetSampleCount() != of.GetSampleCount() || math.Abs(got.GetSampleSum()-of.GetSampleSum()) > 1e-6 {
			t.Errorf("got %v\nwant %v", got, of)
		}
		if got, want := classicOf(got), classicWanted(durations); !maps.Equal(got, want) {
			t.Errorf("buckets with bounds beside the native ones: got %v, want %v", got, want)
		}
		if len(got.GetExemplars()) == 0 || got.GetExemplars()[0].GetLabel()[0].GetValue() != "0af7651916cd43dd8448eb211c80319c" || got.GetExemplars()[0].GetTimestamp() == nil {
			t.Errorf("got the exemplars %v", got.GetExemplars())
		}
		if v := families["http_server_active_requests"].GetMetric(); len(v) != 1 || v[0].GetGauge() == nil {
			t.Errorf("requests in flight: %v", v)
		}
		if v := families["go_sched_latencies_seconds"].GetMetric(); len(v) != 1 || len(v[0].GetHistogram().GetBucket()) < 2 {
			t.Errorf("the runtime's histogram: %v", v)
		}
		if v := families["go_gc_heap_allocs_bytes_total"].GetMetric(); len(v) != 1 || v[0].GetCounter().GetValue() <= 0 {
			t.Errorf("the runtime's counter: %v", v)
		}
	})
}

// classicOf returns the counts of the buckets with bounds, by these.
func classicOf(h *dto.Histogram) map[float64]uint64 {
	all := map[float64]uint64{}
	for _, b := range h.GetBucket() {
		all[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	return all
}

// classicWanted counts durations by the bounds of OpenTelemetry's conventions.
func classicWanted(durations []time.Duration) map[float64]uint64 {
	all := map[float64]uint64{}
	for _, bound := range []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, math.Inf(1)} {
		all[bound] = 0
		for _, d := range durations {
			if d.Seconds() <= bound {
				all[bound]++
			}
		}
	}
	return all
}

// readProto reads the page as Prometheus does.
func readProto(t *testing.T, m http.Handler) map[string]*dto.MetricFamily {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", asksForNative)
	m.ServeHTTP(w, r)
	families := map[string]*dto.MetricFamily{}
	decoder := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
	for {
		family := new(dto.MetricFamily)
		switch err := decoder.Decode(family); {
		case errors.Is(err, io.EOF):
			return families
		case err != nil:
			t.Fatalf("%s: %v", w.Header(), err)
		}
		families[family.GetName()] = family
	}
}

// bucketsOf returns the counts of buckets that are not empty, by their numbers.
func bucketsOf(h *dto.Histogram) map[int]int64 {
	all := map[int]int64{}
	at, count, deltas := 0, int64(0), h.GetPositiveDelta()
	for _, span := range h.GetPositiveSpan() {
		at += int(span.GetOffset())
		for range span.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			if count > 0 {
				all[at] = count
			}
			at++
		}
	}
	return all
}
