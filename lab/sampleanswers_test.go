package lab_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// An arm that answers otherwise than the control is warned of in the pilot and late in the
// run, and a body that turns wrong under the load is caught, unless verify explains it.
func TestUnlikeAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode   string
		accept string // Accept-Encoding
		verify study.Verify
		pilot  bool   // warned of in it
		late   string // a warning of the run
		trial  string // a warning of the arm's trials
	}{
		{"ok", "", study.Verify{}, false, "", ""},
		{"other", "", study.Verify{}, true, "b answers GET / with status 200 and a body of 5 bytes", ""},
		{"other", "gzip", study.Verify{}, false, "", ""},
		{"turns", "", study.Verify{}, true, "b answers GET / with status 200 and a body of 16 bytes", "the answer to GET / changed under the load: status 200 and a body of 5 bytes"},
		{"turns", "", study.Verify{Contains: "hello"}, false, "", "the answer to GET / changed under the load"},
	} {
		t.Run(tc.mode+tc.accept, func(t *testing.T) {
			s := small(t, "ok", tc.mode)
			s.Twin, s.Workloads = false, s.Workloads[:1]
			s.Workloads[0].Targets = []study.Target{{Path: "/", Verify: tc.verify}}
			if tc.accept != "" {
				s.Workloads[0].Targets[0].Header = map[string]string{"Accept-Encoding": tc.accept}
			}
			o := options(t, s)
			o.Blocks = 1
			var before []string
			o.Progress = func(e lab.Event) {
				if e.Stage == lab.Ended && e.Result == nil {
					before = append(before, e.Text)
				}
			}
			run, err := lab.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(before, "\n"); strings.Contains(said, "b answers GET /") != tc.pilot {
				t.Errorf("the pilot says %q, want a warning: %t", said, tc.pilot)
			}
			a, err := verdict.Analyse(run)
			if err != nil {
				t.Fatal(err)
			}
			var warnings []string
			for _, w := range a.Warnings {
				warnings = append(warnings, w.Error())
			}
			if said := strings.Join(warnings, "\n"); !strings.Contains(said, tc.late) || tc.late == "" && strings.Contains(said, "answers GET /") {
				t.Errorf("the run warns %q, want %q", said, tc.late)
			}
			for _, tr := range run.Trials {
				said := strings.Join(tr.Warnings, "\n")
				if want := tc.trial != "" && tr.Arm == "b"; strings.Contains(said, "changed under the load") != want || want && !strings.Contains(said, tc.trial) {
					t.Errorf("trial of %s warns %q, want %q: %t", tr.Arm, said, tc.trial, want)
				}
			}
		})
	}
}

// A run in which most trials do not count stops after two blocks and says why.
func TestRefusedStopsEarly(t *testing.T) {
	s := small(t, "ok", "ok")
	s.Workloads, s.Primary.Workload = s.Workloads[1:], "open"
	s.Workloads[0].Rate, s.Workloads[0].Connections = study.Rate{PerSecond: 1e5}, 1 // no answer comes within 10 µs
	s.Workloads[0].Timeout = 200 * time.Millisecond                                 // what waits longer is not answered any more
	s.Attribute = study.Attribute{For: 100 * time.Millisecond, Repeat: 1}           // none is taken
	o := options(t, s)
	o.Blocks = 12
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(run.Trials); run.Manifest.Outcome != "refused" || n != 2*s.CellsPerBlock() || len(run.Captures) > 0 {
		t.Errorf("got the outcome %q after %d trials and %d captures, want refused after %d", run.Manifest.Outcome, n, len(run.Captures), 2*s.CellsPerBlock())
	}
	a, err := verdict.Analyse(run)
	if err != nil || !strings.HasPrefix(a.Headline, "Nothing is decided: 6 of 6 trials do not count, most often because ") {
		t.Errorf("got the headline %q, %v", a.Headline, err)
	}
}

// Half of the trials are not most: an arm that never counts does not end the run.
func TestHalfRefusedGoesOn(t *testing.T) {
	var all []record.Trial
	for i := range 8 {
		tr := record.Trial{Block: i / 2}
		if i%2 == 0 {
			tr.Invalid = []string{"it died"}
		}
		all = append(all, tr)
	}
	if why := lab.Refused(all); why != "" {
		t.Errorf("got %q, want to go on", why)
	}
	all[1].Invalid = []string{"it died"}
	if why := lab.Refused(all); why != "5 of 8 trials do not count, most often because it died" {
		t.Errorf("got %q", why)
	}
}

// A run whose primary response time the generator's lag voids in most trials stops and says why.
// One that is decided by something else, as a gate is, goes on.
func TestLagOfThePrimaryStops(t *testing.T) {
	s := &study.Study{Name: "s", Control: "a", Arms: []study.Arm{{Name: "a"}, {Name: "b"}}, Workloads: []study.Workload{{Name: "open", Schedule: "constant"}},
		Primary: study.Primary{Metric: "response_p95", Workload: "open"}}
	run := func(lagging int) *record.Run {
		r := &record.Run{Manifest: record.Manifest{Study: *s, Outcome: "refused"}}
		for i := range 8 {
			lag := 5e3
			if i < lagging {
				lag = 20e3
			}
			r.Trials = append(r.Trials, record.Trial{Block: i / 2, Arm: []string{"a", "b"}[i%2], Workload: "open", Steady: true,
				Metrics: map[string]float64{"cpu_per_request": 1e4}, Readings: &record.Readings{Times: map[string]record.Lagged{"response_p95": {Response: 1e5, Lag: lag}}}})
		}
		return r
	}
	const why = "the generator's lag voids response time (p95), which the study decides on, in 5 of 8 trials"
	for _, tc := range []struct {
		lagging int
		metric  string
		primary bool
		want    string
	}{
		{4, "response_p95", true, ""}, {5, "response_p95", true, why}, {5, "response_p95", false, ""}, {5, "cpu_per_request", true, ""},
	} {
		s.Primary.Metric = tc.metric
		if got := lab.RefusedBy(s, tc.primary, run(tc.lagging).Trials); got != tc.want {
			t.Errorf("%d of 8 lag, decided by %s, the study's own: %t: got %q, want %q", tc.lagging, tc.metric, tc.primary, got, tc.want)
		}
	}
	s.Primary.Metric = "response_p95"
	a, err := verdict.Analyse(run(5))
	if err != nil || a.Headline != "Nothing is decided: "+why+"." {
		t.Errorf("got the headline %q, %v", a.Headline, err)
	}
}
