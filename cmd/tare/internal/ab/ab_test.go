package ab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
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

func TestParseArm(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GREETING", "good day")
	program(t, "api")
	for _, tt := range []struct {
		text string
		want service
	}{
		{"http://127.0.0.1:8080/", service{name: "127.0.0.1-8080", url: "http://127.0.0.1:8080"}},
		{"./api", service{name: "api", pkg: "./api"}},
		{"api", service{name: "api", pkg: "api"}},
		{"./api@main", service{name: "api@main", pkg: "./api", ref: "main"}},
		{"./gone@v1.2.0", service{name: "gone@v1.2.0", pkg: "./gone", ref: "v1.2.0"}},
		{"GOGC=400 ./api -addr {addr}", service{name: "api+GOGC-400", pkg: "./api", env: []string{"GOGC=400"}, args: []string{"-addr", "${TARE_ADDR}"}}},
		{"sh -c 'sleep 1; exit' $GREETING", service{name: "sh", command: []string{"sh", "-c", "sleep 1; exit", "good", "day"}}},
	} {
		got, err := parseArm(tt.text)
		tt.want.text = tt.text
		if err != nil || quoteService(got) != quoteService(tt.want) {
			t.Errorf("parseArm(%q)\n got %s, %v\nwant %s", tt.text, quoteService(got), err, quoteService(tt.want))
		}
	}
	for text, want := range map[string]string{
		"": "names no program", "GOGC=1": "names no program", "./nowhere": "neither a program nor", "'": "reading", ".": "folder without Go files",
	} {
		if _, err := parseArm(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseArm(%q): error %v, want one with %q", text, err, want)
		}
	}
}

func quoteService(s service) string {
	return strings.Join([]string{s.name, s.text, s.url, s.pkg, s.ref, quote(append([]string{}, s.with...)),
		quote(append([]string{}, s.command...)), quote(append([]string{}, s.args...)), quote(append([]string{}, s.env...))}, " | ")
}

// TestStudyFile sees that what is written is a study, and says what was asked for.
func TestStudyFile(t *testing.T) {
	t.Chdir(t.TempDir())
	program(t, "api")
	c := &Cmd{
		Services: []string{"./api@main", "./api", "./api"}, With: []string{"pgo,go1.25.4"},
		Ask:     askFlags{Path: []string{"/orders/7 3", "POST /orders"}, Body: "{\"a\": \"é\n\"}", Headers: cli.Headers{Header: []string{"Accept: text/plain"}}},
		Measure: runFlags{Connections: 8, Rate: "2000", Threshold: 2, Metric: "cpu_per_request", Budget: 60e9},
		Service: serviceFlags{Port: 8080, Ready: "/healthz", Before: "echo 'a: b'", Workdir: "."},
	}
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	p.fit(c.Measure.Budget, 0)
	s, err := p.study("tare ab\nx: y")
	if err != nil {
		t.Fatalf("%v\n%s", err, p.yaml("tare ab"))
	}
	if len(s.Arms) != 4 || s.Arms[2].Name != "api-2" || s.Arms[3].Ref != "main" || quote(s.Arms[3].With) != `["pgo","go1.25.4"]` {
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

func TestSettle(t *testing.T) {
	answer := func(arm string, status int, sum string) lab.Answer {
		return lab.Answer{Arm: arm, Status: status, SHA256: sum, Stable: true}
	}
	for _, tt := range []struct {
		name       string
		b          lab.Answer
		status     int
		want, diff string
		sum        bool
	}{
		{"alike", answer("b", 200, "x"), 0, "", "", true},
		{"other content", answer("b", 200, "y"), 0, "", "other content", false},
		{"other status", answer("b", 404, "x"), 0, "b answers / with status 404, want 200", "", false},
		{"unlike what is asked", answer("b", 200, "x"), 204, "a answers / with status 200, want 204", "", false},
		{"changing content", lab.Answer{Arm: "b", Status: 200, SHA256: "z"}, 0, "", "", false},
	} {
		p := &plan{targets: []study.Target{{Path: "/"}}}
		got, err := p.settle([]lab.Answer{answer("a", 200, "x"), tt.b}, tt.status)
		if tt.want != "" {
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil || !strings.Contains(strings.Join(got, "\n"), tt.diff) || tt.diff == "" && len(got) > 0 || (p.targets[0].Verify.SHA256 != "") != tt.sum {
			t.Errorf("%s: differences %q, error %v, verified by %+v", tt.name, got, err, p.targets[0].Verify)
		}
	}
	p := &plan{targets: []study.Target{{Path: "/"}}}
	if _, err := p.settle([]lab.Answer{answer("a", 404, "x"), answer("b", 404, "x")}, 0); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("both answer 404: error %v", err)
	}
}

// What would help depends on why nothing was decided.
func TestHintOfInconclusive(t *testing.T) {
	c := &Cmd{Measure: runFlags{Budget: 2 * time.Minute}}
	for _, tt := range []struct {
		outcome string
		blocks  int
		want    string
	}{
		{"budget", 4, "try --budget 8m0s"},
		{"cap", 7, "try --budget 8m0s"},
		{"cap", mostBlocks, "does not help"},
		{"refused", 2, "most trials were invalid"},
		{"decided", 12, "could not be compared"},
	} {
		f, ok := errors.AsType[*cli.Failure](c.inconclusive(tt.outcome, tt.blocks))
		if !ok || f.Status != cli.ExitInconclusive || !strings.Contains(f.Hint, tt.want) {
			t.Errorf("outcome %q after %d blocks: got %+v, want the hint %q", tt.outcome, tt.blocks, f, tt.want)
		}
	}
}
