package study_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/studies"
)

// What no workload compares arms by is told before anything is measured, and with
// what would have it compared.
func TestTells(t *testing.T) {
	started := []study.Arm{{Name: "a", Go: "./a"}, {Name: "b", Go: "./b"}, {Name: "c", URL: "http://localhost:1/"}}
	plain, full := study.Workload{Name: "plain"}, study.Workload{Name: "full", Live: true, Loop: 1, Idle: 1, Counters: true}
	closed, rated := study.Workload{Name: "closed", Schedule: "closed"}, study.Workload{Name: "rated", Schedule: "poisson"}
	outside := study.Workload{Name: "outside", Arms: []string{"a", "c"}}
	for _, tt := range []struct {
		metric    string
		attribute study.Attribute
		workloads []study.Workload
		want      string // "" = nil
	}{
		{"cpu_per_request", study.Attribute{}, []study.Workload{plain}, ""},
		{"loop_time", study.Attribute{}, []study.Workload{plain}, `workload "plain" does not run; give it loop`},
		{"loop_time", study.Attribute{}, []study.Workload{plain, full}, ""},
		{"loop_cache_hits", study.Attribute{}, []study.Workload{plain}, "counters: true"},
		{"heap_live", study.Attribute{}, []study.Workload{plain}, "live: true"},
		{"heap_live", study.Attribute{}, []study.Workload{full}, ""},
		{"idle_connection", study.Attribute{}, []study.Workload{plain}, "idle: 10000"},
		{"kernel_cpu", study.Attribute{}, []study.Workload{plain}, "attribute does not ask"},
		{"kernel_cpu", study.Attribute{For: 1, Arms: []string{"b"}}, []study.Workload{plain}, "attribute does not ask"},
		{"kernel_cpu", study.Attribute{For: 1}, []study.Workload{plain}, ""},
		{"host_withheld", study.Attribute{}, []study.Workload{plain}, "the load generator or the host"},
		{"lag_p99", study.Attribute{}, []study.Workload{plain}, "the load generator or the host"},
		{"pss", study.Attribute{}, []study.Workload{outside}, "an arm that is a URL"},
		{"pss", study.Attribute{}, []study.Workload{outside, plain}, ""},
		{"response_p99", study.Attribute{}, []study.Workload{outside}, ""},
		{"pss", study.Attribute{}, []study.Workload{{Name: "alone", Arms: []string{"a"}}}, "no arm beside the control"},
		{"throughput", study.Attribute{}, []study.Workload{rated}, "is the rate that it offers"},
		{"throughput", study.Attribute{}, []study.Workload{rated, closed}, ""},
		{"response_p99", study.Attribute{}, []study.Workload{closed}, "at equal offered rates only"},
		{"response_p99", study.Attribute{}, []study.Workload{closed, rated}, ""},
		{"speed", study.Attribute{}, []study.Workload{plain}, `no metric is called "speed"`},
	} {
		s := &study.Study{Arms: started, Control: "a", Workloads: tt.workloads, Attribute: tt.attribute}
		switch err := s.CheckComparable(tt.metric); {
		case err == nil && tt.want != "":
			t.Errorf("%s under %q: no error, want %q", tt.metric, tt.workloads[0].Name, tt.want)
		case err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s under %q: got %v, want %q", tt.metric, tt.workloads[0].Name, err, tt.want)
		}
	}
}

// Every built-in study tells what it is about, and what its claims are about.
func TestStudiesTell(t *testing.T) {
	all, err := studies.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if len(s.Arms) == 1 {
			continue // against itself
		}
		if err := s.CheckComparable(s.Primary.Metric); err != nil {
			t.Errorf("study %s: %v", s.Name, err)
		}
		for _, c := range s.Claims {
			for _, k := range c.Checks {
				if k.Kind != study.Effect {
					continue
				}
				if err := s.CheckComparable(k.Metric); err != nil {
					t.Errorf("study %s, claim %s: %v", s.Name, c.ID, err)
				}
			}
		}
	}
}
