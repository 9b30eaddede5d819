package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs/runstest"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

func TestConfirm(t *testing.T) {
	gate := func(arm string, result bound.Outcome) verdict.Gated {
		m, _ := study.MetricNamed("cpu_per_request")
		return verdict.Gated{Comparison: &verdict.Comparison{Metric: m, Workload: "load", Arm: arm}, Result: result}
	}
	first := []verdict.Gated{gate("a", bound.Failed), gate("b", bound.Failed), gate("c", bound.Held), gate("d", bound.Failed)}
	got := Confirm(first, []verdict.Gated{gate("a", bound.Failed), gate("b", bound.Held), gate("c", bound.Failed)})
	for i, want := range [][2]bound.Outcome{{bound.Failed, bound.Failed}, {bound.Inconclusive, bound.Held}, {bound.Held, ""}, {bound.Inconclusive, ""}} {
		if got[i].Result != want[0] || got[i].Again != want[1] {
			t.Errorf("%s: got %s, again %q, want %s, %q", got[i].Arm, got[i].Result, got[i].Again, want[0], want[1])
		}
	}
	if first[1].Result != bound.Failed {
		t.Error("the first run's gates were changed")
	}
	if comment.Worst(got) != bound.Failed || comment.Worst(got[1:]) != bound.Inconclusive || comment.Worst(got[2:3]) != bound.Held || comment.Worst(nil) != bound.Held {
		t.Error("the worst of several is not what it is")
	}
}

// TestRepeating wants no secret in a command that everybody can read, nor places of where it
// ran.
func TestRepeating(t *testing.T) {
	args := []string{"/usr/bin/tare", "ab", "./a@main", "DB_PASSWORD=hunter2 GOGC=50 ./a", "--comment", "-H", "Authorization: Bearer hunter2", "--headers", "X-Api-Key:hunter2",
		"http://me:hunter2@127.0.0.1:8080/", "--path", "/orders/7?token=hunter2&n=3",
		"--markdown", "/runner/comment.md", "--sarif=/runner/tare.sarif", "--dir", "/runner/runs", "--max", "cpu_per_request<=5%"}
	got := repeating(args)
	text := report.ShellLine(got)
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "GOGC=50") || !strings.Contains(text, "Authorization: …") || !strings.Contains(text, "@127.0.0.1:8080/") {
		t.Errorf("got %q", got)
	}
	if strings.Contains(text, "runner") || !strings.HasSuffix(text, "token=…' --max 'cpu_per_request<=5%'") {
		t.Errorf("got %q, want no files of where it ran", got)
	}
	if got[0] != "tare" || slices.Contains(got, "--comment") || args[0] != "/usr/bin/tare" {
		t.Errorf("got %q of %q", got, args)
	}
}

func TestMarker(t *testing.T) {
	for subject, want := range map[string]string{"ab api@main": "tare: ab-api", "ab api@4f1c2d3": "tare: ab-api", "release before": "tare: release-before", "a -->\n<b>": "tare: a-b"} {
		if got := marker(subject); got != want {
			t.Errorf("marker of %q is %q, want %q", subject, got, want)
		}
	}
}

// TestPublish posts what it writes to a file, where the job belongs to a pull request.
func TestPublish(t *testing.T) {
	var posted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			io.WriteString(w, "[]")
			return
		}
		var sent struct{ Body string }
		json.NewDecoder(r.Body).Decode(&sent)
		posted = append(posted, sent.Body)
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"id":1,"html_url":"https://forge.example/7#1"}`)
	}))
	defer server.Close()
	event := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(event, []byte(`{"pull_request":{"number":7}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "x", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_API_URL": server.URL, "GITHUB_EVENT_PATH": event}
	getenv := func(name string) string { return vars[name] }
	var said strings.Builder
	term := &cli.Terminal{Out: io.Discard, Err: &said, Columns: 80}
	f := &Flags{Comment: true, Markdown: filepath.Join(t.TempDir(), "comment.md")}
	if err := f.Check(term, getenv); err != nil {
		t.Fatal(err)
	}
	run := runstest.Interrupted(t)
	a, err := verdict.Analyse(run)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(t.Context(), term, Result{Run: run, Analysis: a, Args: []string{"tare", "gate", "null"}}); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(f.Markdown)
	if err != nil || len(posted) != 1 || posted[0] != "<!-- tare: null-"+a.Manifest.Study.Control+" -->\n"+string(written) || !strings.Contains(said.String(), "https://forge.example/7#1") {
		t.Errorf("posted %q, said %q, wrote %q, %v", posted, said.String(), written, err)
	}
	if err := f.PublishSame(t.Context(), term, comment.Equal{Study: "null", Control: "plain", BuildID: "5e5e"}, nil); err != nil || len(posted) != 2 || !strings.Contains(posted[1], "identical") {
		t.Errorf("posted %q, %v", posted, err)
	}

	vars["GITHUB_EVENT_PATH"] = filepath.Join(t.TempDir(), "push.json")
	if err := os.WriteFile(vars["GITHUB_EVENT_PATH"], []byte(`{"ref":"refs/heads/main"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	of := &Flags{Comment: true}
	if err := of.Check(term, getenv); err != nil || !strings.Contains(said.String(), "does not belong to a pull request") {
		t.Errorf("of a push: error %v, said %q", err, said.String())
	}
	if err := of.Publish(t.Context(), term, Result{Run: run, Analysis: a}); err != nil || len(posted) != 2 {
		t.Errorf("of a push: error %v, %d comments", err, len(posted))
	}
	if err := (&Flags{Comment: true}).Check(term, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "GitHub Actions") {
		t.Errorf("at a terminal: error %v", err)
	}
}

// A file that could not be written is the exit status, unless a budget is exceeded.
func TestWithFailure(t *testing.T) {
	full := errors.New("no space left on device")
	undecided := &cli.Failure{Status: cli.ExitInconclusive, Err: errors.New("inconclusive")}
	exceeded := &cli.Failure{Status: cli.ExitThreshold, Err: errors.New("a budget is exceeded")}
	for _, c := range []struct {
		outcome, unpublished error
		want                 int
	}{
		{nil, nil, 0},
		{nil, full, cli.ExitFailed},
		{undecided, nil, cli.ExitInconclusive},
		{undecided, full, cli.ExitFailed},
		{exceeded, full, cli.ExitThreshold},
	} {
		var said bytes.Buffer
		got := cli.PrintError(&cli.Terminal{Err: &said}, WithFailure(c.outcome, c.unpublished))
		if told := strings.Contains(said.String(), full.Error()); got != c.want || told != (c.unpublished != nil) {
			t.Errorf("%v, %v: status %d, want %d; said %q", c.outcome, c.unpublished, got, c.want, said.String())
		}
	}
}
