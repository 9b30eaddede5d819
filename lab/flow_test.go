package lab_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
)

// visited is a study in which users of two operations come to arms.
func visited(t *testing.T, modes ...string) *study.Study {
	t.Helper()
	s := small(t, modes...)
	w := &s.Workloads[0]
	w.Name, w.Schedule, w.Connections = "users", "constant", 0
	w.Flow = &study.Flow{Operations: []string{"greet", "leave"}, Says: json.RawMessage(`{
		"users": {"arrive": "200/s"},
		"flows": [{"name": "visit", "steps": [
			{"name": "greet", "url": "/", "check": {"contains": "hello"}},
			{"name": "leave", "url": "/bye", "think": "1ms"}]}]}`)}
	s.Workloads = s.Workloads[:1]
	s.Primary.Workload = "users"
	return s
}

// TestUsersComeToArms has the metrics, counts and histograms of each operation on record.
func TestUsersComeToArms(t *testing.T) {
	s := visited(t, "ok", "ok")
	s.Trial.Measure = 250 * time.Millisecond
	run, err := lab.Run(t.Context(), options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if run.Manifest.Units["greet/response_p50"] != "ns" || len(run.Manifest.Capacity) != 0 {
		t.Errorf("units %v, capacity %v: want units of operations, and no capacity", run.Manifest.Units, run.Manifest.Capacity)
	}
	counted := 0
	for _, tr := range run.Trials {
		if len(tr.Invalid) > 0 {
			continue // this machine may be busy
		}
		counted++
		if len(tr.Operations) != 2 || tr.RequestsOf("greet") == 0 || tr.RequestsOf("greet")+tr.RequestsOf("leave") != tr.Requests || tr.RequestsOf("") != tr.Requests || tr.RequestsOf("none") != 0 {
			t.Errorf("trial %d: %d requests, of these %+v", tr.Seq, tr.Requests, tr.Operations)
		}
		for _, metric := range []string{"throughput", "errors", "greet/errors", "leave/status_4xx", "greet/relative_mean"} {
			if _, ok := tr.Metrics[metric]; !ok {
				t.Errorf("trial %d lacks %s: %v", tr.Seq, metric, tr.Metrics)
			}
		}
		for metric := range tr.Metrics {
			if metric == "first_byte_p50" || metric == "reuse" || metric == "peak_flight" || metric == "answer_bytes" {
				t.Errorf("trial %d: users do not see %s", tr.Seq, metric)
			}
		}
		if _, ok := tr.Readings.Times["leave/response_mean"]; !ok {
			t.Errorf("trial %d lacks the readings of an operation: %v", tr.Seq, tr.Readings.Times)
		}
		h, err := run.Histograms(tr)
		if err != nil || h.Operations["greet"] == nil || h.Operations["greet"].Count() != tr.RequestsOf("greet") || h.Response.Count() != tr.Requests {
			t.Errorf("trial %d: histograms %+v, %v", tr.Seq, h, err)
		}
	}
	if counted == 0 {
		t.Errorf("of %d trials none counts: %q", len(run.Trials), run.Trials[0].Invalid)
	}
}

// TestUsersAreFailed does not count a trial in which too many users were answered wrongly,
// and ends a run whose arm never answers them as they ask.
func TestUsersAreFailed(t *testing.T) {
	s := visited(t, "ok", "turns") // wrong from the 21st answer on
	s.Workloads[0].Flow.Says = json.RawMessage(strings.Replace(string(s.Workloads[0].Flow.Says), `{"contains": "hello"}`, `{"matches": "^hello$"}`, 1))
	tr, err := lab.OneTrial(t.Context(), options(t, s), 0)
	if err != nil || len(tr.Invalid) > 0 && strings.Contains(tr.Invalid[0], "failed") {
		t.Errorf("the good arm: %q, %v", tr.Invalid, err)
	}
	s.Arms[0], s.Arms[1] = s.Arms[1], s.Arms[0]
	tr, err = lab.OneTrial(t.Context(), options(t, s), 0)
	if err != nil || len(tr.Invalid) == 0 || !strings.Contains(tr.Invalid[0], "failed, more than 0.1 %") || !strings.Contains(strings.Join(tr.Warnings, "; "), "greet: ") {
		t.Errorf("the other: %q, warnings %q, %v, want that users failed, and at which operation", tr.Invalid, tr.Warnings, err)
	}
	_, err = lab.Run(t.Context(), options(t, s))
	if !errors.Is(err, lab.ErrArm) || !strings.Contains(err.Error(), "greet: the body does not match") {
		t.Errorf("got the error %v, want one about the operation", err)
	}
}
