package study_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/load/flow/script"
)

// What a study says of users is the same when it is read back from a run's folder, in which
// its files are missing.
func TestFlows(t *testing.T) {
	s, err := study.ParseFile("testdata/users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back study.Study
	if err := json.Unmarshal(written, &back); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		schedule, file, profile string
		operations              []string
		rate                    float64
	}{
		{"constant", "flows/shop.yaml", "", []string{"list", "order"}, 20},
		{"poisson", "", "spike", []string{"login", "look"}, 5},
		{"closed", "", "", []string{"one"}, 0},
	} {
		w := back.Workloads[i]
		if w.Schedule != want.schedule || w.Profile != want.profile || w.Flow == nil || w.Flow.File != want.file || !slices.Equal(w.Flow.Operations, want.operations) {
			t.Errorf("%s: got %s, %q, %+v, want %+v", w.Name, w.Schedule, w.Profile, w.Flow, want)
			continue
		}
		f, err := script.Parse("x.yaml", w.Flow.Says, "http://127.0.0.1:1")
		if err != nil {
			t.Errorf("%s: reading back %s: %v", w.Name, w.Flow.Says, err)
			continue
		}
		if f.Rate() != want.rate || len(f.Sent()) == 0 || f.Base != "http://127.0.0.1:1" {
			t.Errorf("%s: read back, got %v/s and %d steps of %s", w.Name, f.Rate(), len(f.Sent()), f.Base)
		}
	}
	f, err := script.Parse("x.yaml", back.Workloads[0].Flow.Says, "")
	if err != nil {
		t.Fatal(err)
	}
	if step := f.Flows[0].Steps[0]; step.URL != "/items?a=1&b=<2>" {
		t.Errorf("got the URL %q", step.URL)
	}
	if body := f.Flows[1].Steps[1].Body; body != "übel \"und\" 'gut'\n" {
		t.Errorf("got the body %q", body)
	}
}

// Metrics of an operation are those of all requests, told of fewer.
func TestMetricsOfOperations(t *testing.T) {
	m, ok := study.MetricNamed("order/response_p99")
	all, _ := study.MetricNamed("response_p99")
	if !ok || m.Operation != "order" || m.Name != "order/response_p99" || m.Requests != all.Requests || m.Unit != all.Unit || !strings.HasPrefix(m.Title, "order: ") || study.Plain(m.Name) != all.Name {
		t.Errorf("got %+v, %t", m, ok)
	}
	for _, name := range []string{"order/cpu_per_request", "order/", "/response_p99x", "order/response"} {
		if m, ok := study.MetricNamed(name); ok {
			t.Errorf("%q: got %+v, want none", name, m)
		}
	}
	s, err := study.ParseFile("testdata/users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range s.Metrics() {
		if m.Operation == "list" || m.Operation == "one" {
			names = append(names, m.Name)
		}
		if got, ok := study.MetricNamed(m.Name); !ok || got != m {
			t.Errorf("%s: named, it is %+v, want %+v", m.Name, got, m)
		}
	}
	if want := 2 * 8; len(names) != want || !slices.Contains(names, "list/response_p99") || !slices.Contains(names, "one/errors") {
		t.Errorf("got %d metrics of two operations, want %d: %q", len(names), want, names)
	}
	if n := len(study.Metrics()); n >= len(s.Metrics()) {
		t.Errorf("the study's metrics are %d, those of all requests %d", len(s.Metrics()), n)
	}
}
