package studies_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tarehq/tare/arms/routes"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/studies"
)

var update = flag.Bool("update", false, "rewrite study.schema.json")

func all(t *testing.T) []*study.Study {
	t.Helper()
	s, err := studies.All()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNamed(t *testing.T) {
	for _, s := range all(t) {
		got, err := studies.Named(s.Name)
		if err != nil || got.Name != s.Name {
			t.Errorf("Named(%q): got %v, %v", s.Name, got, err)
		}
	}
	_, err := studies.Named("nestng")
	if err == nil || !strings.Contains(err.Error(), "did you mean nesting?") {
		t.Errorf("Named(nestng): got %v, want a hint at nesting", err)
	}
}

// Every built-in study says what it asks, why, and has a quick form that a
// person waits for.
func TestEveryStudyIsWhole(t *testing.T) {
	for _, s := range all(t) {
		if s.Title == "" || s.Question == "" || s.Notes == "" || s.Threshold == 0 || s.File != "" {
			t.Errorf("%s: want a title, a question, notes, a threshold and no file", s.Name)
		}
		q, longest := s.QuickForm(), 150*time.Second
		if d := study.Estimate(q, s.Quick.Blocks, 250*time.Millisecond); d == 0 || d > longest {
			t.Errorf("%s: the quick form takes %s, want some time and at most %s", s.Name, d, longest)
		}
		for _, w := range s.Workloads {
			for i, g := range w.Targets {
				v := g.Verify
				if v.Status == 0 || len(v.Header) == 0 && v.Status == 200 || v.Length == nil && v.SHA256 == "" && v.Contains == "" && v.Status == 200 {
					t.Errorf("%s: workload %s, target %d: want status, a header and the body verified", s.Name, w.Name, i)
				}
			}
		}
	}
}

// Every arm's program, and every server's, is in the repository, unless it is a
// module's at a version or one that must be installed.
func TestArmsExist(t *testing.T) {
	for _, s := range all(t) {
		arms := s.Arms
		for _, w := range s.Workloads {
			if w.Server != nil {
				arms = append(arms, *w.Server)
			}
		}
		for _, a := range arms {
			if strings.Contains(a.Go, "@") || len(a.Needs) > 0 && a.Command != nil {
				continue
			}
			name, _, _ := strings.Cut(a.Rival, "@")
			dir := filepath.Join("..", "arms", "rivals", name)
			if a.Go != "" {
				dir = filepath.Join("..", a.Go)
			}
			if sources, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(sources) == 0 {
				t.Errorf("%s, arm %s: no Go program in %s", s.Name, a.Name, dir)
			}
		}
	}
}

func TestClaims(t *testing.T) {
	claims, err := studies.Claims()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(claims), 62; got != want {
		t.Errorf("got %d claims, want %d", got, want)
	}
	published := map[string]study.Published{}
	for _, c := range claims {
		published[c.ID] = c
	}
	tested := map[string]string{}
	names := map[string]bool{}
	for _, s := range all(t) {
		names[s.Name] = true
		for _, c := range s.Claims {
			tested[c.ID] = s.Name
			if published[c.ID].Study != s.Name {
				t.Errorf("%s tests %s, which claims.yaml gives to %q", s.Name, c.ID, published[c.ID].Study)
			}
			for _, k := range c.Checks {
				for _, figure := range []*float64{k.PublishedArm, k.PublishedAgainst} {
					if figure != nil && !states(published[c.ID], *figure) {
						t.Errorf("%s, %s, %q: %g is not among the published figures", s.Name, c.ID, k.Says, *figure)
					}
				}
			}
		}
	}
	for _, c := range claims {
		if names[c.Study] && tested[c.ID] == "" {
			t.Errorf("%s belongs to %s, which does not test it", c.ID, c.Study)
		}
	}
}

// What the arms of this repository are to reach stands in their studies as
// goals, each on the side that its metric is better on. A quick form keeps some
// of them.
func TestGoals(t *testing.T) {
	var with []string
	for _, s := range all(t) {
		if len(s.Goals) == 0 {
			continue
		}
		with = append(with, s.Name)
		for _, g := range s.Goals {
			for _, k := range g.Checks() {
				m, ok := study.MetricNamed(k.Metric)
				if !ok || (k.Op == ">=") != m.Higher {
					t.Errorf("%s, %q: %s %s is no goal, since higher is better is %t", s.Name, g.Says, k.Metric, k.Op, m.Higher)
				}
			}
		}
		if q := s.QuickForm(); len(q.Goals) == 0 {
			t.Errorf("%s: the quick form keeps none of %d goals", s.Name, len(s.Goals))
		}
	}
	if want := []string{"chain", "engine", "github", "routekinds", "routers", "routescaling", "tools"}; !slices.Equal(with, want) {
		t.Errorf("got goals in %v, want them in %v", with, want)
	}
}

// The study of the GitHub table asks for each of its routes once, and for what the
// route answers.
func TestGitHub(t *testing.T) {
	s, err := studies.Named("github")
	if err != nil {
		t.Fatal(err)
	}
	table, targets := routes.GitHub(), s.Workloads[0].Targets
	if len(targets) != len(table) {
		t.Fatalf("got %d targets, want one for each of %d routes", len(targets), len(table))
	}
	for i, r := range table {
		e, g := r.Example(), targets[i]
		method := cmp.Or(g.Method, http.MethodGet)
		v := g.Verify
		if method != e.Method || g.Path != e.Path || v.Status != http.StatusOK || v.Header["Content-Type"] != e.ContentType || *v.Length != int64(len(e.Body)) || v.Contains != e.Body {
			t.Errorf("target %d: got %s %s and %+v, want %+v", i, method, g.Path, v, e)
		}
	}
}

// A verdict that no study gives comes from a test that there is.
func TestVerdictsComeFromTests(t *testing.T) {
	claims, err := studies.Claims()
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for _, c := range claims {
		if c.By == "" {
			continue
		}
		given++
		words := strings.Fields(c.By) // go test ./package -run Name
		found := false
		for _, file := range glob(t, filepath.Join("..", words[2], "*_test.go")) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(source), "\nfunc "+words[4]+"(t *testing.T)")
		}
		if !found {
			t.Errorf("%s: no test answers %q", c.ID, c.By)
		}
	}
	if given == 0 {
		t.Error("no claim has a verdict from a test")
	}
}

// states tells whether a claim publishes a figure, given in its base unit.
func states(c study.Published, want float64) bool {
	units := []struct {
		suffix string
		base   float64
	}{
		{"_us", 1e3}, {"us", 1e3}, {"ns", 1}, {"_ms", 1e6}, {"_per_req", 1}, {"_mb", 1e6}, {"_kib", 1 << 10}, {"_pct", 0.01}, {"_10k", 1}, {"rps", 1}, {"allocs", 1},
	}
	for _, row := range c.Values {
		for name, v := range row {
			figure, ok := v.(float64)
			for _, u := range units {
				if ok && strings.HasSuffix(name, u.suffix) && math.Abs(figure*u.base-want) <= 1e-9*math.Abs(want) {
					return true
				}
			}
		}
	}
	return false
}

// study.schema.json is what the parser's table makes, and says the same as the
// parser of every file but for what refers from one part to another.
func TestSchema(t *testing.T) {
	const file = "study.schema.json"
	want, err := study.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what the parser's table makes; run go test ./studies -update", file)
	}
	var s jsonschema.Schema
	if err := s.UnmarshalJSON(got); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	accept := func(file string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("not YAML: %w", err)
		}
		return resolved.Validate(v)
	}
	for _, file := range glob(t, "*.yaml", "../lab/study/testdata/*.yaml") {
		if err := accept(file); (err == nil) == (file == "claims.yaml") {
			t.Errorf("%s: the schema says %v", file, err)
		}
	}
	for _, file := range glob(t, "../lab/study/testdata/invalid/*.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		refers := strings.HasPrefix(string(data), "# schema: accepts\n")
		if err := accept(file); (err == nil) != refers {
			t.Errorf("%s: the schema says %v, want acceptance %t", file, err, refers)
		}
	}
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, p := range patterns {
		files, err := filepath.Glob(p)
		if err != nil || len(files) == 0 {
			t.Fatalf("looking for %s: %d found, %v", p, len(files), err)
		}
		all = append(all, files...)
	}
	return all
}
