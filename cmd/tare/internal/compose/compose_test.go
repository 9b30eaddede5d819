package compose

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	program(t, "my api")
	server := "./node_modules/@shop/server"
	if err := errors.Join(os.MkdirAll(filepath.Dir(server), 0o755), os.WriteFile(server, []byte("#!/bin/sh\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		text string
		want Service
	}{
		{"api@main", Service{Name: "api@main", Pkg: "api", Ref: "main"}},
		{"./my api", Service{Name: "my-api", Pkg: "./my api"}},
		{"'./my api@main' -greet 'good day'", Service{Name: "my-api@main", Pkg: "./my api", Ref: "main", Args: []string{"-greet", "good day"}}},
		{server + " --port {port}", Service{Name: "server", Command: []string{server, "--port", "${TARE_PORT}"}}},
		{"http://127.0.0.1:8080/", Service{Name: "127.0.0.1-8080", URL: "http://127.0.0.1:8080"}},
		{"http://me:hunter2@b:2", Service{Name: "b-2", URL: "http://me:hunter2@b:2"}},
		{"DB=postgres://me:hunter2@b/shop ./api", Service{Name: "api+DB-postgres-me-@b-shop", Pkg: "./api", Env: []string{"DB=postgres://me:hunter2@b/shop"}}},
		{"./api", Service{Name: "api", Pkg: "./api"}},
		{"api", Service{Name: "api", Pkg: "api"}},
		{"./api@main", Service{Name: "api@main", Pkg: "./api", Ref: "main"}},
		{"./api/.@main", Service{Name: "api@main", Pkg: "./api/.", Ref: "main"}},
		{"./gone@v1.2.0", Service{Name: "gone@v1.2.0", Pkg: "./gone", Ref: "v1.2.0"}},
		{"GOGC=400 ./api -addr {addr}", Service{Name: "api+GOGC-400", Pkg: "./api", Env: []string{"GOGC=400"}, Args: []string{"-addr", "${TARE_ADDR}"}}},
		{"ADDR={host}:{port} DB={dir}/x ./api", Service{Name: "api+ADDR--host-port-+DB--dir-x", Pkg: "./api", Env: []string{"ADDR=${TARE_HOST}:${TARE_PORT}", "DB=${TARE_DIR}/x"}}},
		{"ADDR=:$PORT ./api -dir \"${TARE_DIR}\"", Service{Name: "api+ADDR--TARE_PORT", Pkg: "./api", Env: []string{"ADDR=:${TARE_PORT}"}, Args: []string{"-dir", "${TARE_DIR}"}}},
		{"sh -c 'echo $UNSET_HERE' ${UNSET_TOO:-x}", Service{Name: "sh", Command: []string{"sh", "-c", "echo $UNSET_HERE", "x"}}},
		{"http://127.0.0.1:8080/search?q=x", Service{Name: "127.0.0.1-8080-search-q-x", URL: "http://127.0.0.1:8080/search?q=x"}},
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
		"sh $UNSET_HERE": "$UNSET_HERE is not set", ":8080/x": "is written http://localhost:8080/x", "api.test:80": "is written http://api.test:80",
	} {
		if _, err := ParseService(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseService(%q): error %v, want one with %q", text, err, want)
		}
	}
}

// URLs may have the path that is asked for, if no flag says it.
func TestRequestOfURLs(t *testing.T) {
	for _, tt := range []struct {
		texts     []string
		ask       AskFlags
		url, path string // of the last service, and asked for
		err       string
	}{
		{[]string{"http://a:1", "http://b:2/"}, AskFlags{}, "http://b:2", "/", ""},
		{[]string{"http://a:1/orders/", "http://b:2/orders/"}, AskFlags{}, "http://b:2", "/orders/", ""},
		{[]string{"http://a:1/x?q=1", "http://u:p@b:2/x?q=1"}, AskFlags{}, "http://u:p@b:2", "/x?q=1", ""},
		{[]string{"http://a:1", "http://b:2/"}, AskFlags{Path: []string{"/x"}}, "http://b:2", "/x", ""},
		{[]string{"http://a:1", "http://u:pw@b:2/v2"}, AskFlags{Path: []string{"/x"}}, "", "", "http://u:…@b:2/v2 says what to ask for, and so do flags"},
		{[]string{"http://a:1/v1", "http://b:2/v2"}, AskFlags{}, "", "", "http://b:2/v2 has /v2 where others have /v1"},
		{[]string{"http://a:1", "http://b:2?q=1"}, AskFlags{Path: []string{"/x"}}, "", "", "http://b:2?q=1 says what to ask for"},
	} {
		p := &Plan{}
		for _, text := range tt.texts {
			one, err := ParseService(text)
			if err != nil {
				t.Fatal(err)
			}
			p.Arms = append(p.Arms, one)
		}
		err := p.Request(&tt.ask)
		switch last := len(p.Arms) - 1; {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: error %v, want one with %q", tt.texts, err, tt.err)
			}
		case err != nil || p.Arms[last].URL != tt.url || p.Targets[0].Path != tt.path:
			t.Errorf("%q: asks %s for %+v, %v; want %s for %s", tt.texts, p.Arms[last].URL, p.Targets, err, tt.url, tt.path)
		}
	}
}

// A body that nothing takes is a mistake, and a flag's field replaces a file's of that name.
func TestRequestCompletes(t *testing.T) {
	har := filepath.Join(t.TempDir(), "a.har")
	entry := `{"log":{"entries":[{"request":{"method":"GET","url":"http://h/x","headers":[{"name":"authorization","value":"old"}]}}]}}`
	if err := os.WriteFile(har, []byte(entry), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &Plan{}
	if err := p.Request(&AskFlags{From: har, Headers: cli.Headers{Header: []string{"Authorization: new"}}}); err != nil {
		t.Fatal(err)
	}
	if got := p.Targets[0].Header; len(got) != 1 || got["Authorization"] != "new" {
		t.Errorf("the header is %v, want the flag's field alone", got)
	}
	if err := (&Plan{}).Request(&AskFlags{Path: []string{"/orders"}, Body: "{}"}); err == nil || !strings.Contains(err.Error(), "no request takes the body") {
		t.Errorf("a body for a GET: error %v", err)
	}
	p = &Plan{}
	if err := p.Request(&AskFlags{Path: []string{"/", "POST /orders"}, Body: "{}"}); err != nil || p.Targets[0].Body != "" || p.Targets[1].Body != "{}" {
		t.Errorf("a body for a POST: %+v, %v", p.Targets, err)
	}
}

func TestDefaultMetric(t *testing.T) {
	program, attached := []Service{{Pkg: "."}, {Pkg: "."}}, []Service{{URL: "http://a"}, {URL: "http://b"}}
	for _, tt := range []struct {
		goos, rate string
		arms       []Service
		want       string
	}{
		{"linux", "50%", program, "cpu_per_request"}, {"linux", "", program, "cpu_per_request"},
		{"linux", "50%", attached, "response_p50"}, {"linux", "", attached, "throughput"},
		{"darwin", "50%", program, "response_p50"}, {"darwin", "", program, "throughput"},
	} {
		if got := (&Plan{Rate: tt.rate, Arms: tt.arms}).DefaultMetric(tt.goos); got != tt.want {
			t.Errorf("%s at rate %q: got %s, want %s", tt.goos, tt.rate, got, tt.want)
		}
	}
}

// Programs of one name are distinguished by what differs in their arguments.
func TestNameApart(t *testing.T) {
	t.Chdir(t.TempDir())
	program(t, "sh-2")
	for _, tt := range []struct{ services, want []string }{
		{[]string{"sh a", "sh a"}, []string{"sh", "sh-2"}},
		{[]string{"sh -c a", "sh -x -c a", "sh -c a"}, []string{"sh", "sh+-x", "sh-2"}},
		{[]string{"sh app.py", "sh /srv/app2.py", "sh"}, []string{"sh", "sh+-srv-app2.py", "sh-2"}},
		{[]string{"sh a", "GOGC=10 sh a", "sh b", "sh b"}, []string{"sh", "sh+GOGC-10", "sh+b", "sh+b-2"}},
		{[]string{"MODE=a API_SECRET=x sh a", "MODE=a API_SECRET=x sh b"}, []string{"sh", "sh+b"}},
		{[]string{"API_SECRET=x sh", "LOG=no API_SECRET=y sh", "sh"}, []string{"sh+API_SECRET", "sh+LOG-no+API_SECRET", "sh"}},
		{[]string{"sh a", "sh a --api-key=hunter2"}, []string{"sh", "sh+--api-key"}},
		{[]string{"sh", "sh", "./sh-2", "sh"}, []string{"sh", "sh-3", "sh-2", "sh-4"}},
		{[]string{"./sh-2", "sh", "sh"}, []string{"sh-2", "sh", "sh-3"}},
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

// Where captures leave no time for more, the fewest blocks that can decide get a spare one,
// in case that a trial does not count. All are for one look, which has the whole error rate.
func TestFitPlansASpareBlock(t *testing.T) {
	for _, tt := range []struct {
		fewest int
		budget time.Duration
		looks  []int
	}{
		{6, time.Minute, []int{7}},
		{6, 32 * time.Second, []int{6}}, // 3 s of pilot, and 4.65 s a block
		{8, time.Minute, []int{9}},
		{6, 80 * time.Second, []int{8, 10}},
	} {
		p := NewPlan("ab", ServiceFlags{})
		p.Arms, p.Fewest, p.Capture = make([]Service, 2), tt.fewest, study.EBPF
		if said, _ := p.Fit(tt.budget, 0); !slices.Equal(p.Looks, tt.looks) {
			t.Errorf("%d blocks can decide, %s: got looks at %v, want %v: %s", tt.fewest, tt.budget, p.Looks, tt.looks, said)
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
	p := NewPlan("ab", ServiceFlags{})
	p.Arms, p.Fewest = make([]Service, 2), 6
	if said, blocks := p.Fit(0, 0); blocks != MostBlocks || strings.Contains(said, "too short") {
		t.Errorf("without a cap: %d blocks, %s", blocks, said)
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
		"listen tcp :8080: bind: address already in use":                                "is the service running?",
		"OSError: [Errno 98] Address already in use":                                    "is the service running?",
		"Error: listen EADDRINUSE: address already in use":                              "is the service running?",
		"open api.conf: no such file or directory":                                      "--workdir",
		"asking http://a:1: / answers with status 500":                                  "--status CODE",
		"/: status 500, want 200":                                                       "--status CODE",
		"9 of 99 answers were not as the workload asks":                                 "--status CODE",
		"dial tcp 127.0.0.1:9: connect: connection refused":                             "the port in its URL",
		"the arm ended: exit status 1; it wrote:\ndial tcp db:5432: connection refused": "--env-file",
		`starting a: running "make db": exit status 4: x`:                               "--before",
		"under load: the arm ended: exit status 0":                                      "while it was loaded",
		"the arm ended: exit status 0":                                                  "went to the background",
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
	p = &Plan{Targets: []study.Target{{Path: "/", Header: map[string]string{"authorization": "Bearer x", "Accept": "text/html", "X-Api-Key": "${KEY}"}}}}
	if got, err := p.Settle([]lab.Answer{answer("a", 200, "x"), answer("b", 200, "x")}, 0); err != nil || len(got) != 1 || !strings.Contains(got[0], "the value of Authorization in plain text") {
		t.Errorf("a token in plain text: warnings %q, error %v, want one that names its field", got, err)
	}
}
