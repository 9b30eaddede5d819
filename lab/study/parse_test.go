package study_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/lab/study"
)

var update = flag.Bool("update", false, "rewrite the expected messages below testdata")

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Each file of testdata/invalid is wrong in the ways that the file beside it
// says.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("looking for files: %d found, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := study.Parse(filepath.Base(file), read(t, file))
			var ms shape.Mistakes
			if !errors.As(err, &ms) {
				t.Fatalf("parsing %s: got %v, want Mistakes", file, err)
			}
			got, golden := err.Error()+"\n", strings.TrimSuffix(file, ".yaml")+".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(read(t, golden)); got != want {
				t.Errorf("parsing %s\ngot\n%swant\n%s", file, got, want)
			}
		})
	}
}

// What is no regular file may never begin or never end.
func TestParseFileRefuses(t *testing.T) {
	for path, want := range map[string]string{os.DevNull: "not a regular file", t.TempDir(): "not a regular file", filepath.Join(t.TempDir(), "none.yaml"): "no such file"} {
		if _, err := study.ParseFile(path); !errors.As(err, new(*fs.PathError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q of the path", path, err, want)
		}
	}
}

func TestEachMistakeIsAnError(t *testing.T) {
	_, err := study.Parse("x.yaml", read(t, "testdata/invalid/unknown-key.yaml"))
	var one shape.Mistake
	if !errors.As(err, &one) {
		t.Fatalf("got %T, want one that wraps Mistake", err)
	}
	if one.File != "x.yaml" || one.Line != 2 || one.Column != 1 {
		t.Errorf("got the first mistake at %s:%d:%d, want x.yaml:2:1", one.File, one.Line, one.Column)
	}
}

func TestParseFull(t *testing.T) {
	s, err := study.ParseFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, k := s.Workloads, s.Claims
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"name", s.Name, "full-house"},
		{"file", s.File, "testdata/full.yaml"},
		{"notes", s.Notes, "First line.\nSecond line."},
		{"kind", s.Kind, study.Servers},
		{"twin", s.Twin, true},
		{"threshold", s.Threshold, 0.005},
		{"build", strings.Join(s.Arms[0].Build, " "), "-pgo=off GOEXPERIMENT=nogreenteagc"},
		{"disassemble", strings.Join(s.Disassemble, " "), "main.(*open).ServeHTTP main.main"},
		{"inside", w[0].Live && w[0].Lines && w[0].Counters, true},
		{"not inside", w[1].Live || w[1].Lines || w[1].Counters, false},
		{"env", strings.Join(s.Arms[0].Env, " "), "GOGC=50 EMPTY="},
		{"x", *s.Arms[0].X, 1.5},
		{"rival", s.Arms[1].Rival, "gin@v1.8.2"},
		{"no x", s.Arms[1].X == nil, true},
		{"command", strings.Join(s.Arms[2].Command, " "), "nginx -c ${TARE_DIR}/nginx.conf"},
		{"url", s.Arms[3].URL, "http://127.0.0.1:8080"},
		{"fresh", w[0].Fresh, 0.125},
		{"timeout", w[0].Timeout, 90 * time.Second},
		{"measure", s.Measured(w[0]), 4 * time.Second},
		{"measure of the study", s.Measured(w[1]), 3 * time.Second},
		{"loop", w[0].Loop, 200 * time.Millisecond},
		{"idle", w[0].Idle, 500},
		{"length", *w[0].Targets[0].Verify.Length, int64(18)},
		{"verified header", w[0].Targets[0].Verify.Header["Content-Type"], "application/json; charset=utf-8"},
		{"body", w[0].Targets[1].Body, "hello"},
		{"share", w[1].Rate, study.Rate{Share: 0.5}},
		{"aliased weight", w[1].Targets[0].Weight, 3},
		{"rate", w[2].Rate, study.Rate{PerSecond: 1000}},
		{"warm-up", s.Trial.WarmUp, 500 * time.Millisecond},
		{"looks", len(s.Looks), 3},
		{"quick slice", s.Quick.Trial.Slice, 100 * time.Millisecond},
		{"effect unless said", k[0].Checks[0].Kind, study.Effect},
		{"published ms", *k[0].Checks[0].PublishedArm, 2.3e6},
		{"published µs", *k[0].Checks[0].PublishedAgainst, 159e3},
		{"published ratio", *k[0].Checks[2].PublishedRatio, 0.69},
		{"direction of the ratio", k[0].Checks[2].Direction, "less"},
		{"published MiB", *k[1].Checks[0].PublishedArm, 124.0 * (1 << 20)},
		{"published MB", *k[1].Checks[0].PublishedAgainst, 8.2e6},
		{"fact", k[1].Checks[1].Value, "1048576"},
		{"op", k[1].Checks[2].Op, ">="},
		{"bound", *k[1].Checks[2].Bound, 10000.0},
		{"bound of a ratio", *k[1].Checks[3].BoundRatio, 0.5},
		{"goals", len(s.Goals), 4},
		{"checks of a goal", fmt.Sprint(checked(s.Goals[0])), "[closed cpu_per_request own/rival closed cpu_per_request own/daemon closed rss_peak own/rival closed rss_peak own/daemon half cpu_per_request own/rival half cpu_per_request own/daemon half rss_peak own/rival half rss_peak own/daemon]"},
		{"ratio of a goal", *s.Goals[0].Checks()[7].BoundRatio, 0.95},
		{"checks of a goal about one arm each", fmt.Sprint(checked(s.Goals[1])), "[half startup own/ half startup rival/ steady startup own/ steady startup rival/]"},
		{"bound of a goal", *s.Goals[1].Bound, 50e6},
		{"checks of a goal about what arms add", fmt.Sprint(checked(s.Goals[3])), "[half cpu_per_request own/rival half cpu_per_request own/daemon]"},
		{"bound of what arms add", s.Goals[3].Checks()[1].Paired(), true},
		{"bound of one arm", s.Goals[1].Checks()[1].Paired(), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
}

// What is sent and what is looked for is as the file has it: some services want the
// end of a body's last line, too.
func TestContentAsItIs(t *testing.T) {
	for written, want := range map[string]string{
		`"a\n"`:           "a\n",
		`"a\n\n"`:         "a\n\n",
		`"\n"`:            "\n",
		"a":               "a",
		"|\n          a":  "a\n",
		"|-\n          a": "a",
	} {
		s, err := study.Parse("x.yaml", []byte(`name: x
arms: [{name: a, go: ./a}, {name: b, go: ./b}]
control: a
workloads:
  - name: w
    schedule: closed
    targets:
      - path: /
        method: POST
        body: `+written+`
        verify:
          contains: `+strings.ReplaceAll(written, "\n ", "\n   ")+`
primary: {metric: throughput, workload: w}
`))
		if err != nil {
			t.Errorf("%q: %v", written, err)
			continue
		}
		if g := s.Workloads[0].Targets[0]; g.Body != want || g.Verify.Contains != want {
			t.Errorf("%q: got the body %q, and %q to look for, want %q", written, g.Body, g.Verify.Contains, want)
		}
	}
}

// checked are the checks that a goal stands for, in short.
func checked(g study.Goal) []string {
	var all []string
	for _, k := range g.Checks() {
		all = append(all, k.Workload+" "+k.Metric+" "+k.Arm+"/"+k.Against)
	}
	return all
}

func TestParseFileMissing(t *testing.T) {
	_, err := study.ParseFile("testdata/nowhere.yaml")
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "testdata/nowhere.yaml") {
		t.Errorf("got %v, want an error about the missing file that names it", err)
	}
}

// A file that says one thing over and over is refused, not expanded.
func TestParseBounds(t *testing.T) {
	var b strings.Builder
	b.WriteString("workloads:\n- &w {name: w, schedule: closed, targets: &t [" + strings.Repeat("{path: /}, ", 1000) + "]}\n")
	b.WriteString(strings.Repeat("- *w\n", 1000))
	for _, c := range []struct{ what, file, want string }{
		{"aliases", b.String(), "says too much"},
		{"itself", "arms: &a [*a]\n", "got a list"},
		{"lists", "name: " + strings.Repeat("[", 100_000), "x.yaml:1:107: too deep; at most 100 lists or mappings within one another"},
		{"mappings", "name: " + strings.Repeat("{", 100_000), "x.yaml:1:107: too deep"},
		{"dashes", strings.Repeat("- ", 100_000), "x.yaml:1:201: too deep"},
		{"keys", strings.Repeat("a: 1\n", 10_001), "x.yaml:10001:2: the file says too much; at most 10000 keys"},
		{"size", strings.Repeat("# long\n", 1<<18), "at most 1048576 bytes are read"},
	} {
		if _, err := study.Parse("x.yaml", []byte(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %.300v, want an error with %q", c.what, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/invalid/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := study.Parse("x.yaml", data)
		if err != nil {
			for _, m := range err.(shape.Mistakes) {
				if m.Line < 1 || m.Column < 1 || m.Text == "" {
					t.Errorf("mistake %+v: want a position from 1:1 and a text", m)
				}
			}
			return
		}
		// What is accepted can be planned, in both forms.
		for _, s := range []*study.Study{s, s.QuickForm()} {
			p := study.NewPlan(s, 1, 2)
			if len(p) != 2*s.CellsPerBlock() || len(p) == 0 {
				t.Errorf("plan of two blocks has %d cells, want %d and more than 0", len(p), 2*s.CellsPerBlock())
			}
		}
	})
}
