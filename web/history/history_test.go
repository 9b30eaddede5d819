package history_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/studies"
	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/history/historytest"
)

// open opens an index in a file of its own.
func open(t testing.TB, root string) *history.Index {
	t.Helper()
	return openAt(t, root, filepath.Join(t.TempDir(), "index #1?.db"))
}

func openAt(t testing.TB, root, source string) *history.Index {
	t.Helper()
	x, err := history.Open(t.Context(), root, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// fill has the index take over all that there is.
func fill(t testing.TB, x *history.Index) history.Changes {
	t.Helper()
	c, err := x.Sync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Analyse(t.Context(), 1000, time.Now()); err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSync(t *testing.T) {
	tryIndex(t, func(t *testing.T, root string) *history.Index { return open(t, root) })
}

// tryIndex is what holds of an index in either database.
func tryIndex(t *testing.T, open func(t *testing.T, root string) *history.Index) {
	root := t.TempDir()
	first := historytest.Write(t, root, historytest.Run{Day: 1, Title: "Zero\x00 byte"})
	second := historytest.Write(t, root, historytest.Run{Day: 2, Study: "other_study"})
	running := historytest.Write(t, root, historytest.Run{Day: 3, Unended: true})
	put(t, filepath.Join(root, "20260104-150405-broken", "manifest.json"), "{half")
	put(t, filepath.Join(root, "20260105-150405-newer", "manifest.json"), `{"schema": 99}`)
	put(t, filepath.Join(root, "20260106-150405-empty", "manifest.json"), `{}`)
	put(t, filepath.Join(root, "20260107-150405-torn", "manifest.json"), string(read(t, filepath.Join(root, first, "manifest.json"))))
	put(t, filepath.Join(root, "20260107-150405-torn", "trials.jsonl"), "{}\nnonsense\n{}\n")
	put(t, filepath.Join(root, "no-run", "readme.txt"), "x")
	put(t, filepath.Join(root, ".upload-1", "manifest.json"), "{}")
	x := open(t, root)
	if c := fill(t, x); c.Added != 7 || c.Changed+c.Removed != 0 {
		t.Errorf("found %+v, want 7 runs", c)
	}
	runs, all, err := x.Runs(t.Context(), history.Query{})
	if err != nil || all != 7 || len(runs) != 7 {
		t.Fatalf("got %d of %d runs, %v, want 7", len(runs), all, err)
	}
	now := time.Now()
	for name, want := range map[string]struct{ state, reason string }{
		first: {"decided", ""}, second: {"decided", ""}, running: {"running", ""},
		"20260104-150405-broken": {"unreadable", "20260104-150405-broken/manifest.json"},
		"20260105-150405-newer":  {"unreadable", "99"},
		"20260106-150405-empty":  {"unreadable", ""},
		"20260107-150405-torn":   {"unreadable", "trials.jsonl:2"},
	} {
		r, err := x.Run(t.Context(), name)
		if err != nil || r.State(now) != want.state || !strings.Contains(r.Reason, want.reason) || strings.Contains(r.Reason, root) {
			t.Errorf("%s: got %q because of %q, %v; want %q because of %q, without the folder's path", name, r.State(now), r.Reason, err, want.state, want.reason)
		}
		if want.state == "decided" && (r.Headline == "" || r.Trials != 24 || r.Build != "c0" || r.Machine != "a processor" || r.Command != "tare run "+r.Study) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
	if c := fill(t, x); c.Any() {
		t.Errorf("looking again found %+v, want nothing", c)
	}
	historytest.End(t, filepath.Join(root, running))
	if err := os.RemoveAll(filepath.Join(root, second)); err != nil {
		t.Fatal(err)
	}
	if c := fill(t, x); c.Changed != 1 || c.Removed != 1 || c.Added != 0 {
		t.Errorf("found %+v, want one changed and one removed", c)
	}
	if r, err := x.Run(t.Context(), running); err != nil || r.Outcome != "decided" || r.Headline == "" {
		t.Errorf("the run that ended is %+v, %v", r, err)
	}
	if _, err := x.Run(t.Context(), second); err == nil {
		t.Error("the removed run is still there")
	}
	for name, c := range map[string]struct {
		q    history.Query
		want int
	}{
		"study": {history.Query{Study: "release"}, 3}, "text": {history.Query{Text: "NEWER"}, 1}, "text, literally": {history.Query{Text: "%"}, 0},
		"headline": {history.Query{Text: "more cpu"}, 2}, "state": {history.Query{State: "decided"}, 2}, "unreadable": {history.Query{State: "unreadable", Text: "torn"}, 1},
		"unfinished": {history.Query{State: "unfinished"}, 0}, "hostile": {history.Query{Text: `'; DROP TABLE tare_runs; --` + "\x00", Study: `"`, State: `'`}, 0},
	} {
		if _, got, err := x.Runs(t.Context(), c.q); err != nil || got != c.want {
			t.Errorf("%s: got %d runs, %v, want %d", name, got, err, c.want)
		}
	}
	if page, all, err := x.Runs(t.Context(), history.Query{Offset: 4, Limit: 3}); err != nil || all != 6 || len(page) != 2 {
		t.Errorf("the second page has %d of %d runs, %v, want 2 of 6", len(page), all, err)
	}
	studies, err := x.Studies(t.Context())
	if err != nil || len(studies) != 1 || studies[0].Runs != 2 || studies[0].Newest.Name != running {
		t.Errorf("got the studies %+v, %v, want release with 2 runs", studies, err)
	}
	if err := x.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := fill(t, x); c.Added != 6 {
		t.Errorf("built anew: found %+v, want 6 runs", c)
	}
	tryHostile(t, x, root)
}

// tryHostile adds a run with names that are too long for an index and stand there twice. It does not
// keep another from being read after it.
func tryHostile(t *testing.T, x *history.Index, root string) {
	t.Helper()
	names := []string{historytest.Write(t, root, historytest.Run{Day: 20}), historytest.Write(t, root, historytest.Run{Day: 19})}
	path := filepath.Join(root, names[0], "manifest.json")
	var m record.Manifest
	if err := json.Unmarshal(read(t, path), &m); err != nil {
		t.Fatal(err)
	}
	rng, long := rand.New(rand.NewPCG(1, 2)), ""
	for range 10_000 {
		long += string(rune('Ā' + rng.IntN(256))) // which no database compresses to a tenth
	}
	m.Study.Name, m.Study.Title, m.Outcome = long, long, long
	m.Study.Workloads = append(m.Study.Workloads, m.Study.Workloads[0])
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, string(text))
	fill(t, x)
	for _, name := range names {
		r, err := x.Run(t.Context(), name)
		if err != nil || r.Headline == "" || r.Reason != "" || len(r.Study)+len(r.Outcome) > 600 {
			t.Errorf("%s: got a study's name of %d bytes, headline %q, unreadable because of %q, %v; want it read, and names cut", name, len(r.Study), r.Headline, r.Reason, err)
		}
		if choices, err := x.Choices(t.Context(), r.Study); err != nil || len(choices) == 0 {
			t.Errorf("%s: its study can be followed by %v, %v, want something", name, choices, err)
		}
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestFollow(t *testing.T) {
	root := t.TempDir()
	for day := range 9 {
		r := historytest.Run{Day: day + 1, Factor: 1 + float64(day)/10, Commit: fmt.Sprintf("c%d", day)}
		switch day {
		case 1:
			r.Build = "another"
		case 2:
			r.Machine = "another"
		case 3:
			r.Quick = true
		}
		historytest.Write(t, root, r)
	}
	x := open(t, root)
	fill(t, x)
	choices, err := x.Choices(t.Context(), "release")
	of := history.Choice{Workload: "load", Metric: "cpu_per_request"}
	if err != nil || !slices.Equal(choices, []history.Choice{of}) {
		t.Fatalf("got the choices %v, %v, want %v", choices, err, of)
	}
	s, err := x.Follow(t.Context(), "release", of, true)
	if err != nil || len(s.Entries) != 6 || len(s.Others) != 3 || !slices.Equal(s.Arms, []string{"api"}) {
		t.Fatalf("got %+v, %v, want 6 runs of one control, and 3 left out", s, err)
	}
	days := []int{0, 4, 5, 6, 7, 8}
	values, at := s.Values("api")
	for i, day := range days {
		p := s.Entries[i].Of("api")
		want := float64(day) / 10
		if p == nil || math.Abs(p.Value-want) > 0.01 || p.Commit != fmt.Sprintf("c%d", day) || p.Blocks != 12 || p.Lo == nil || *p.Lo > want+0.001 || *p.Hi < want-0.001 {
			t.Errorf("run %d: got %+v, want a change of %g", i, p, want)
		}
		if at[i] != i || math.Abs(math.Expm1(values[i])-want) > 0.01 {
			t.Errorf("run %d: got the value %g at %d, want ln(1+%g)", i, values[i], at[i], want)
		}
	}
	if s, err = x.Follow(t.Context(), "release", of, false); err != nil || len(s.Entries) != 9 {
		t.Errorf("of any control: got %d runs, %v, want 9", len(s.Entries), err)
	}
}

func TestOpen(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	file := filepath.Join(t.TempDir(), "x.db")
	if n := history.MostConnections(openAt(t, root, file)); n < 2 || n > 20 {
		t.Errorf("the index may open %d connections, want few: a server has a hundred for all its clients", n)
	}
	for name, c := range map[string]struct{ root, source, want string }{
		"another folder's": {other, file, "name another database"},
		"no folder":        {filepath.Join(root, "none"), file, "there is no folder"},
		"no database":      {root, text(t, "this is a text and no database, which SQLite finds when it reads it"), "name another database by --db"},
		"no server":        {root, "postgres://u:secret@127.0.0.1:1/d?connect_timeout=2", "127.0.0.1"},
	} {
		x, err := history.Open(t.Context(), c.root, c.source)
		if err == nil {
			x.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", name, err, c.want)
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	one, err := history.Open(t.Context(), root, "")
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two, err := history.Open(t.Context(), other, "")
	if err != nil {
		t.Fatal(err) // each folder has an index of its own
	}
	two.Close()
}

func text(t *testing.T, content string) string {
	path := filepath.Join(t.TempDir(), "text")
	put(t, path, strings.Repeat(content+"\n", 100))
	return path
}

// TestClaims counts the runs that judged a claim by the rule that it has today, in whatever words,
// and says how many did so by another.
func TestClaims(t *testing.T) {
	claims := func(direction, says string) []study.Claim {
		return []study.Claim{{ID: "P0.cpu", Checks: []study.Check{{
			Kind: study.Effect, Says: says, Metric: "cpu_per_request", Workload: "load", Arm: "api", Direction: direction,
		}}}}
	}
	root := t.TempDir()
	historytest.Write(t, root, historytest.Run{Day: 1, Claims: claims("more", "more CPU")})
	second := historytest.Write(t, root, historytest.Run{Day: 2, Claims: claims("more", "it takes more")})
	third := historytest.Write(t, root, historytest.Run{Day: 3, Claims: claims("less", "less CPU")})
	x := open(t, root)
	fill(t, x)
	for _, tt := range []struct {
		today map[string][]study.Check
		run   string
		runs  int
		other int
	}{
		{studies.Rules([]*study.Study{{Control: "base", Claims: claims("more", "")}}), second, 2, 1},
		{studies.Rules([]*study.Study{{Control: "base", Claims: claims("less", "")}}), third, 1, 2},
		{studies.Rules([]*study.Study{{Control: "api", Claims: claims("less", "")}}), "", 0, 3},
		{nil, third, 3, 0},
	} {
		all, err := x.Claims(t.Context(), tt.today)
		if got := all["P0.cpu"]; err != nil || got.Run != tt.run || got.Runs != tt.runs || got.Others != tt.other || history.Settled(got.Verdict) != (tt.run != "") {
			t.Errorf("by %+v: got %+v, %v; want run %q of %d, and %d by another rule", tt.today, got, err, tt.run, tt.runs, tt.other)
		}
	}
}
