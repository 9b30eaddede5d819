package compose

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab"
	answered "github.com/tarehq/tare/lab/answer"
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

func TestParseService(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GREETING", "good day")
	program(t, "api")
	for _, tt := range []struct {
		text string
		want Service
	}{
		{"http://127.0.0.1:8080/", Service{Name: "127.0.0.1-8080", URL: "http://127.0.0.1:8080"}},
		{"./api", Service{Name: "api", Pkg: "./api"}},
		{"api", Service{Name: "api", Pkg: "api"}},
		{"./api@main", Service{Name: "api@main", Pkg: "./api", Ref: "main"}},
		{"./api/.@main", Service{Name: "api@main", Pkg: "./api/.", Ref: "main"}},
		{"./gone@v1.2.0", Service{Name: "gone@v1.2.0", Pkg: "./gone", Ref: "v1.2.0"}},
		{"GOGC=400 ./api -addr {addr}", Service{Name: "api+GOGC-400", Pkg: "./api", Env: []string{"GOGC=400"}, Args: []string{"-addr", "${TARE_ADDR}"}}},
		{"ADDR={host}:{port} DB={dir}/x ./api", Service{Name: "api+ADDR--host-port-+DB--dir-x", Pkg: "./api", Env: []string{"ADDR=${TARE_HOST}:${TARE_PORT}", "DB=${TARE_DIR}/x"}}},
		{"sh -c 'sleep 1; exit' $GREETING", Service{Name: "sh", Command: []string{"sh", "-c", "sleep 1; exit", "good", "day"}}},
	} {
		got, err := ParseService(tt.text)
		tt.want.Text = tt.text
		if err != nil || quoteService(got) != quoteService(tt.want) {
			t.Errorf("ParseService(%q)\n got %s, %v\nwant %s", tt.text, quoteService(got), err, quoteService(tt.want))
		}
	}
	for text, want := range map[string]string{
		"": "names no program", "GOGC=1": "names no program", "./nowhere": "neither a program nor", "'": "reading", ".": "folder without Go files",
	} {
		if _, err := ParseService(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseService(%q): error %v, want one with %q", text, err, want)
		}
	}
}

// Programs of one name are told apart by what differs in their arguments.
func TestNameApart(t *testing.T) {
	for _, tt := range []struct{ services, want []string }{
		{[]string{"sh a", "sh a"}, []string{"sh", "sh-2"}},
		{[]string{"sh -c a", "sh -x -c a", "sh -c a"}, []string{"sh", "sh+-x", "sh-2"}},
		{[]string{"sh app.py", "sh /srv/app2.py", "sh"}, []string{"sh", "sh+-srv-app2.py", "sh-2"}},
		{[]string{"sh a", "GOGC=10 sh a", "sh b", "sh b"}, []string{"sh", "sh+GOGC-10", "sh+b", "sh+b-2"}},
	} {
		var all []Service
		for _, text := range tt.services {
			one, err := ParseService(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		NameApart(all)
		for i, one := range all {
			if one.Name != tt.want[i] {
				t.Errorf("%q: service %d is called %s, want %s", tt.services, i, one.Name, tt.want[i])
			}
		}
	}
}

// Services that take long to start and to end leave time for fewer blocks.
func TestFitCountsRestarts(t *testing.T) {
	last := map[time.Duration]int{}
	for _, restart := range []time.Duration{0, 2 * time.Second} {
		p := NewPlan("ab", ServiceFlags{})
		p.Arms, p.Fewest = make([]Service, 2), 6
		if said, blocks := p.Fit(2*time.Minute, restart); !strings.Contains(said, "at most") || blocks != p.Looks[len(p.Looks)-1] {
			t.Errorf("restarts of %v: %d blocks, %s", restart, blocks, said)
		}
		last[restart] = p.Looks[len(p.Looks)-1]
	}
	if last[0] != 25 || last[2*time.Second] != 10 {
		t.Errorf("got %v blocks by the time of a restart, want 25 and 10", last)
	}
}

func quoteService(s Service) string {
	return strings.Join([]string{s.Name, s.Text, s.URL, s.Pkg, s.Ref, quote(append([]string{}, s.With...)),
		quote(append([]string{}, s.Command...)), quote(append([]string{}, s.Args...)), quote(append([]string{}, s.Env...))}, " | ")
}

// Whoever writes it, a port that is taken has its own hint.
func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		"listen tcp :8080: bind: address already in use":   "is the service running?",
		"OSError: [Errno 98] Address already in use":       "is the service running?",
		"Error: listen EADDRINUSE: address already in use": "is the service running?",
		"open api.conf: no such file or directory":         "--workdir",
		"the arm ended: exit status 0":                     "went to the background",
	} {
		f, ok := errors.AsType[*cli.Failure](Explain(fmt.Errorf("%w: %s", lab.ErrArm, text)))
		if !ok || !strings.Contains(f.Hint, want) {
			t.Errorf("%s: got %+v, want a hint with %q", text, f, want)
		}
	}
	if err := errors.New("no space left on device"); Explain(err) != err {
		t.Errorf("%v is explained, though no service has to do with it", err)
	}
}

// What a file has and cannot be asked for is told, and what the control refuses is left out.
func TestRequestOfFile(t *testing.T) {
	at := func(status int) lab.Answer { return lab.Answer{Arm: "a", Answer: answered.Answer{Status: status}} }
	for _, tt := range []struct {
		name     string
		answers  []lab.Answer // to /named, /gone, /good and /later
		status   int
		want     string
		warnings []string
	}{
		{"refused", []lab.Answer{at(200), at(404), at(200), at(200)}, 0, "/named /good /later",
			[]string{`ignoring GET /lacks/{id}: its parameter "id" has no example`, "ignoring GET /gone: a answers with status 404"}},
		{"all well", []lab.Answer{at(200), at(200), at(200), at(200)}, 0, "/named /gone /good /later",
			[]string{`ignoring GET /lacks/{id}: its parameter "id" has no example`}},
		{"the named one", []lab.Answer{at(404), at(200), at(200), at(200)}, 0, "", nil},
		{"all of a status but one", []lab.Answer{at(404), at(404), at(200), at(404)}, 404, "", nil},
	} {
		file := filepath.Join(t.TempDir(), "api.yaml")
		api := "openapi: 3.0.3\ninfo: {title: x, version: '1'}\npaths:\n"
		for _, path := range []string{"/good", "/gone", "/later", "/lacks/{id}"} {
			api += "  " + path + ": {get: {responses: {'200': {description: ok}}}}\n"
		}
		if err := os.WriteFile(file, []byte(api), 0o644); err != nil {
			t.Fatal(err)
		}
		p := &Plan{}
		if err := p.Request(&AskFlags{Path: []string{"/named"}, From: file}); err != nil {
			t.Fatal(err)
		}
		warnings, err := p.Settle(append(tt.answers, tt.answers...), tt.status) // of two arms
		var paths []string
		for _, one := range p.Targets {
			paths = append(paths, one.Path)
		}
		if (err != nil) != (tt.want == "") {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if got := strings.Join(paths, " "); err == nil && (got != tt.want || strings.Join(warnings, "\n") != strings.Join(tt.warnings, "\n")) {
			t.Errorf("%s: asks for %s and warns of %q, want %s and %q", tt.name, got, warnings, tt.want, tt.warnings)
		}
	}
}

func TestSettle(t *testing.T) {
	answer := func(arm string, status int, sum string) lab.Answer {
		return lab.Answer{Arm: arm, Answer: answered.Answer{Status: status, SHA256: sum}, Stable: true}
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
		{"changing content", lab.Answer{Arm: "b", Answer: answered.Answer{Status: 200, SHA256: "z"}}, 0, "", "", false},
	} {
		p := &Plan{Targets: []study.Target{{Path: "/"}}}
		got, err := p.Settle([]lab.Answer{answer("a", 200, "x"), tt.b}, tt.status)
		if tt.want != "" {
			if err == nil || err.Error() != tt.want {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil || !strings.Contains(strings.Join(got, "\n"), tt.diff) || tt.diff == "" && len(got) > 0 || (p.Targets[0].Verify.SHA256 != "") != tt.sum {
			t.Errorf("%s: differences %q, error %v, verified by %+v", tt.name, got, err, p.Targets[0].Verify)
		}
	}
	p := &Plan{Targets: []study.Target{{Path: "/"}}}
	redirect := answer("a", 302, "x")
	redirect.Header = http.Header{"Location": {"/login"}}
	if got, err := p.Settle([]lab.Answer{redirect, redirect}, 0); err != nil || len(got) != 1 || !strings.Contains(got[0], `redirect to "/login"`) {
		t.Errorf("both redirect: warnings %q, error %v, want one that names the place", got, err)
	}
	if got, err := p.Settle([]lab.Answer{redirect, redirect}, 302); err != nil || len(got) > 0 {
		t.Errorf("both redirect, as is meant: warnings %q, error %v, want none", got, err)
	}
	if _, err := p.Settle([]lab.Answer{answer("a", 404, "x"), answer("b", 404, "x")}, 0); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("both answer 404: error %v", err)
	}
}
