package ab

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/compose"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cmd/tare/internal/runs/runstest"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// program makes a folder with a Go file below the working directory of the test.
func program(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(name, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestStudyFile sees that what is written is a study, and says what was asked for.
func TestStudyFile(t *testing.T) {
	t.Chdir(t.TempDir())
	program(t, "api")
	c := &Cmd{
		Services: []string{"./api@main", "./api", "./api"}, With: []string{"pgo,go1.25.4"},
		Ask:     compose.AskFlags{Path: []string{"/orders/7 3", "POST /orders"}, Body: "{\"a\": \"é\n\"}", Headers: cli.Headers{Header: []string{"Accept: text/plain"}}},
		Measure: runFlags{Connections: 8, Rate: "2000", Threshold: 2, Metric: "cpu_per_request", Budget: 60e9},
		Service: compose.ServiceFlags{Port: 8080, Ready: "/healthz", Before: "echo 'a: b'", Workdir: "."},
	}
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	p.Fit(c.Measure.Budget, 0)
	s, err := p.Study("tare ab\nx: y")
	if err != nil {
		t.Fatalf("%v\n%s", err, p.YAML("tare ab"))
	}
	if len(s.Arms) != 4 || s.Arms[2].Name != "api-2" || s.Arms[3].Ref != "main" || !slices.Equal(s.Arms[3].With, []string{"pgo", "go1.25.4"}) {
		t.Errorf("arms %+v", s.Arms)
	}
	if one := s.Arms[0]; one.Listen != "8080" || one.Ready != "/healthz" || one.Before != "echo 'a: b'" {
		t.Errorf("the first arm starts by %+v", one.Service)
	}
	if w := s.Workloads[0]; w.Rate.PerSecond != 2000 || w.Targets[0].Weight != 3 || w.Targets[1].Body != c.Ask.Body || w.Targets[1].Header["Accept"] != "text/plain" {
		t.Errorf("workload %+v", w)
	}
	if !s.AA {
		t.Error("one program named twice is an A/A study")
	}
}

// More services need more blocks before any of them can be told from the control.
func TestFewestBlocks(t *testing.T) {
	t.Chdir(t.TempDir())
	program(t, "api")
	for services, want := range map[int]int{2: 6, 3: 7, 6: 8} {
		c := &Cmd{Services: slices.Repeat([]string{"./api"}, services), Measure: runFlags{Connections: 8, Rate: "0", Threshold: 1}}
		p, err := c.plan()
		if err != nil {
			t.Fatal(err)
		}
		if said, blocks := p.Fit(time.Second, 0); p.Looks[len(p.Looks)-1] != want || blocks != 0 || !strings.Contains(said, "too short") {
			t.Errorf("%d services: looks at %v blocks, want %d at last: %s", services, p.Looks, want, said)
		}
	}
}

// A rate that is as small as another tool's number of runs is warned of.
func TestWarnFew(t *testing.T) {
	for rate, want := range map[string]string{"10/s": "--rate (-r) 10 is requests a second, not a number of runs", "0.5/s": "--rate (-r) 0.5 is", "100/s": "", "50%": "", "": ""} {
		if got := warnFew(rate); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: got %q, want %q", rate, got, want)
		}
	}
}

// The kernel explains the difference where it can sample all services; else what they expose does.
func TestChooseCapture(t *testing.T) {
	refused := errors.New("sampling needs root")
	for _, tt := range []struct {
		name    string
		off     bool
		answers []lab.Answer
		want    study.Source
		said    string
	}{
		{"sampled", false, []lab.Answer{{PID: 7, Go: true}, {PID: 8, Go: true, Profiled: true}}, study.EBPF, ""},
		{"not asked for", true, []lab.Answer{{PID: 7, Go: true}}, "", "--no-why"},
		{"exposed", false, []lab.Answer{{PID: 7, Go: true, Profiled: true, Unsampled: refused}, {PID: 8, Go: true, Profiled: true, Unsampled: refused}}, study.Pprof, ""},
		{"exposed elsewhere", false, []lab.Answer{{PID: 7, Go: true, Profiled: true}, {Profiled: true, Unsampled: refused}}, study.Pprof, ""},
		{"one exposed", false, []lab.Answer{{PID: 7, Go: true, Profiled: true}, {Arm: "api", PID: 8, Go: true, Unsampled: refused}}, "", "api cannot be sampled from outside: sampling needs root"},
		{"one in another language", false, []lab.Answer{{PID: 7, Go: true, Profiled: true}, {Arm: "app.py", PID: 8}}, "", "needs Go programs, and app.py is none"},
	} {
		p := &compose.Plan{}
		c := &Cmd{Measure: runFlags{Why: !tt.off}}
		said := c.chooseCapture(p, tt.answers)
		if p.Capture != tt.want || !strings.Contains(said, tt.said) || (said == "") != (tt.want != "") {
			t.Errorf("%s: by %q, and said %q; want %q and %q", tt.name, p.Capture, said, tt.want, tt.said)
		}
	}
}

// What the command line asks for and no measurement tells is refused before anything starts.
func TestRefusedMetrics(t *testing.T) {
	t.Chdir(t.TempDir())
	program(t, "api")
	services, urls := []string{"./api", "GOGC=9 ./api"}, []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}
	for _, tt := range []struct {
		services     []string
		rate, metric string
		max          runs.Budgets
		want         string // of the error, or the metric
	}{
		{services, "50%", "speed", nil, `--metric: no metric is called "speed"`},
		{services, "0", "response_p99", nil, "--rate 0 has none"},
		{services, "0", "", runs.Budgets{"response_p99": 0.1}, "--max response_p99: response times are compared at one rate"},
		{services, "50%", "", runs.Budgets{"throughput": 0.1}, "--max throughput: at one rate for all"},
		{urls, "50%", "cpu_per_request", nil, "is a URL, whose process tare does not see"},
		{urls, "0", "", nil, "throughput"},
		{urls, "50%", "", nil, "response_p50"},
	} {
		c := &Cmd{Services: tt.services, Measure: runFlags{Connections: 8, Rate: tt.rate, Threshold: 1, Metric: tt.metric}, Output: outputFlags{Max: tt.max}}
		p, err := c.plan()
		if err == nil {
			if p.Metric != tt.want {
				t.Errorf("%+v: by %s, want %q", tt, p.Metric, tt.want)
			}
			continue
		}
		if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Status != cli.ExitUsage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want the mistake %q", tt, err, tt.want)
		}
	}
	c := &Cmd{Services: urls, Measure: runFlags{Connections: 8, Rate: "50%", Threshold: 1}, Output: outputFlags{Max: runs.Budgets{"rss_peak": 0.1}}}
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.schedule(&cli.Terminal{Err: io.Discard}, p, nil, ""); err == nil || !strings.Contains(err.Error(), "--max rss_peak: rss_peak comes from the process") {
		t.Errorf("a budget on what tare does not see: error %v", err)
	}
}

// What would help depends on why nothing was decided.
func TestHintOfInconclusive(t *testing.T) {
	short := &Cmd{Measure: runFlags{Budget: time.Second}}
	if f, ok := errors.AsType[*cli.Failure](short.inconclusive("budget", verdict.Progress{Blocks: 1})); !ok || !strings.Contains(f.Hint, "--budget 1m0s") {
		t.Errorf("a budget of a second: got %+v, want the hint to give enough", f)
	}
	c := &Cmd{Measure: runFlags{Budget: 2 * time.Minute}}
	for _, tt := range []struct {
		outcome       string
		blocks, needs int
		want          string
	}{
		{"budget", 4, 10, "try --budget 8m0s"},
		{"cap", 7, 10, "try --budget 8m0s"},
		{"budget", 5, 130, "try --budget 8m0s; it allows at most 30 blocks"},
		{"cap", compose.MostBlocks, 10, "does not help"},
		{"refused", 2, 10, "most trials did not count"},
		{"decided", 12, 0, "could not be compared"},
	} {
		f, ok := errors.AsType[*cli.Failure](c.inconclusive(tt.outcome, verdict.Progress{Blocks: tt.blocks, Needs: tt.needs}))
		if !ok || f.Status != cli.ExitInconclusive || !strings.Contains(f.Hint, tt.want) || tt.needs <= 10 && strings.Contains(f.Hint, "at most 30") {
			t.Errorf("outcome %q after %d blocks: got %+v, want the hint %q", tt.outcome, tt.blocks, f, tt.want)
		}
	}
}

// An interrupted comparison with budgets is continued by a gate, which judges them. Its looks
// bound the time.
func TestContinueWithBudgets(t *testing.T) {
	run := runstest.Interrupted(t)
	for _, tt := range []struct {
		max  runs.Budgets
		want string
	}{
		{nil, "continue with `tare run --resume " + run.Dir + " --budget 2m0s`"},
		{runs.Budgets{"cpu_per_request": 0.05}, "continue with `tare gate --resume " + run.Dir + " --max cpu_per_request=5`"},
	} {
		c := &Cmd{Measure: runFlags{Budget: 2 * time.Minute}, Output: outputFlags{Max: tt.max}}
		if f := c.session(nil).Interrupted(run, nil); f.Hint != tt.want {
			t.Errorf("--max %v: got the hint %q, want %q", tt.max, f.Hint, tt.want)
		}
	}
}

// A saved study replaces one that tare wrote, and no other file.
func TestSaveKeepsOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, content := range map[string]string{"mine.yaml": "name: precious\n", "study.yaml": "# Written by: tare ab ./a ./b\nname: ab\n", "empty.yaml": ""} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ save, read, want string }{
		{"mine.yaml", "", "tare did not write the file that is there"},
		{"study.yaml", "", ""},
		{"study.yaml", "study.yaml", "that file is read"},
		{"empty.yaml", "", ""},
		{"new.yaml", "", ""},
		{"", "", ""},
	} {
		o := outputFlags{Save: tt.save}
		err := o.check(&cli.Terminal{Err: io.Discard}, []string{tt.read})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("--save %q where %q is read: error %v, want %q", tt.save, tt.read, err, tt.want)
		}
	}
}

func TestRefusedPort(t *testing.T) {
	for port, refused := range map[int]bool{-1: true, 0: false, 65535: false, 65536: true} {
		c := &Cmd{Services: []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}, Service: compose.ServiceFlags{Port: port}, Measure: runFlags{Connections: 8, Rate: "50%", Threshold: 1}}
		if _, err := c.plan(); (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "--port wants") {
			t.Errorf("--port %d: error %v, want one: %t", port, err, refused)
		}
	}
}
