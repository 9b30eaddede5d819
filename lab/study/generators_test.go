package study_test

import (
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/study"
)

func TestParseGenerators(t *testing.T) {
	s, err := study.ParseFile("testdata/generators.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if s.Kind != study.Generators || s.Workloads[0].Server == nil || s.Workloads[0].Server.Go != "./fast" || s.Workloads[1].Server.Args[1] != "1ms" {
		t.Errorf("got %+v, want generators and their servers", s)
	}
	if r := s.Arms[0].Reports; r.Requests != "([0-9]+) requests" || r.P999 != `99.9% (\S+)` || r.Unit != "ms" || s.Arms[1].Reports.LagP99 != `lag (\S+)` {
		t.Errorf("got the reports %+v and %+v", r, s.Arms[1].Reports)
	}
	if under := s.Arms[2].Under; len(under) != 3 || under[2] != `"$0" attack | "$0" report` {
		t.Errorf("got %q as what runs c", under)
	}
	for i, want := range [][2]string{
		{"-c ${TARE_CONNECTIONS} ${TARE_URL}", ""},
		{"${TARE_URL}", "-r ${TARE_RATE} ${TARE_URL}"},
		{"", "-q ${TARE_RATE_EACH} ${TARE_URL}"},
	} {
		for j, w := range s.Workloads {
			args, ok := s.Arms[i].Call(w)
			if got := strings.Join(args, " "); got != want[j] || ok != (want[j] != "") {
				t.Errorf("arm %s, workload %s: got %q, %t, want %q", s.Arms[i].Name, w.Name, got, ok, want[j])
			}
		}
	}
}
