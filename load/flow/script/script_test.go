package script_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/load/flow/script"
)

var update = flag.Bool("update", false, "write the schema anew")

func TestSchema(t *testing.T) {
	got, err := script.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("flow.schema.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile("flow.schema.json"); err != nil || string(got) != string(want) {
		t.Errorf("flow.schema.json differs from the table of keys (%v): go test ./load/flow/script -run Schema -update", err)
	}
}

// page is the page of flow files.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/flow.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocs parses every file of the page.
func TestDocs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "people.csv"), []byte("name\nada\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page(t), -1)
	if len(files) < 3 {
		t.Fatalf("found %d files, want 3: are they still found?", len(files))
	}
	for _, f := range files {
		if _, err := script.Parse(filepath.Join(dir, "docs.yaml"), []byte(f[1]), ""); err != nil {
			t.Errorf("%v in\n%s", err, f[1])
		}
	}
}

// TestDocsKeys has the page name every key of a file.
func TestDocsKeys(t *testing.T) {
	schema, err := script.Schema()
	if err != nil {
		t.Fatal(err)
	}
	text, keys := page(t), 0
	for _, m := range regexp.MustCompile(`"([a-z_]+)": \{\n\s+(?:"\$ref": "[^"]*",\n\s+)?"description"`).FindAllStringSubmatch(string(schema), -1) {
		keys++
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("the page does not say `%s`", m[1])
		}
	}
	if keys < 40 {
		t.Errorf("found %d keys, want 40 or more: are they still found?", keys)
	}
}

const head = "base: http://localhost:1\nusers: {arrive: 10/s}\nflows:\n  - name: a\n    steps:\n"

// parse reads a file whose steps are given.
func parse(t *testing.T, steps string) *script.File {
	t.Helper()
	f, err := script.Parse("a.yaml", []byte(head+steps), "")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "a.yaml:1:1: the file is empty; see `tare help flow` for what it may say"},
		{head + "      - {url: /a, tkae: {id: {json: id}}}\n", `a.yaml:6:19: the step has no key "tkae"; did you mean take?`},
		{head + "      - {url: \"/a/{{.id}}\"}\n", "a.yaml:6:15: url: nothing before gives the value id; there are user"},
		{head + "      - {url: /a, take: {id: {json: id}}}\n      - {url: \"/b/{{.ids}}\"}\n", "a.yaml:7:15: url: nothing before gives the value ids; did you mean id?"},
		{head + "      - {url: /a, header: {X: \"{{id}}\"}}\n", "a.yaml:6:31: X: {{ opens no field; write {{.name}}"},
		{head + "      - {url: /a}\n      - {url: /a}\n", `a.yaml:7:9: two steps of one list are called "GET /a"; give one another name`},
		{head + "      - {url: /a, take: {id: {json: id, header: X}}}\n", "a.yaml:6:30: value id: say where it is: one of json, header, cookie, regexp"},
		{head + "      - {url: /a, take: {id: {json: \"a..b\"}}}\n", `json: got "a..b"; want a path`},
		{head + "      - {url: /a, take: {user: {json: id}}}\n", "the value user is every user's number"},
		{head + "      - {url: /a, repeat: 3, steps: [{url: /b}]}\n", "the step says url and repeat; it is one of them"},
		{head + "      - {think: 1s}\n", "a.yaml:6:7: flow a asks for nothing; give a step a url"},
		{head + "      - {name: x}\n      - {url: /}\n", "the step does nothing; give url, when, repeat or think"},
		{head + "      - {think: 1s, body: x}\n      - {url: /}\n", "a.yaml:6:27: body does not belong here: it goes with url"},
		{head + "      - {repeat: 3}\n      - {url: /}\n", "repeat lacks steps"},
		{head + "      - {repeat: 1000, steps: [{repeat: 1000, steps: [{url: /}]}]}\n", "make 1000000 passes; at most 100000"},
		{head + "      - {when: {value: user}, steps: [{url: /}]}\n", "the condition says one of is, is_not"},
		{head + "      - {when: {is: 1}, steps: [{url: /}]}\n", "the condition lacks the key value"},
		{head + "      - {when: {chance: 5%, value: user}, steps: [{url: /}]}\n", "a matter of chance looks at no value"},
		{head + "      - {url: /, think: \"uniform:3s-1s\"}\n", `think: got "uniform:3s-1s"; want a time to think`},
		{head + "      - {url: /, fail_if: [p99]}\n", `got "p99"; want a threshold`},
		{strings.Replace(head, "base: http://localhost:1\n", "", 1) + "      - {url: /}\n", "the path has no host; give the file a base"},
		{strings.Replace(head, "10/s", "10/s, count: 3", 1) + "      - {url: /}\n", "users say either arrive, such as 10/s (open loop), or count"},
		{strings.Replace(head, "users: {arrive: 10/s}\n", "users: {count: 3, most: 5}\n", 1) + "      - {url: /}\n", "most is for users who arrive"},
		{strings.Replace(head, "flows:", "fail_if: [status_5xx>0]\nflows:", 1) + "      - {url: /}\n", "a session has no status"},
		{strings.Replace(head, "flows:", "feed: none.csv\nflows:", 1) + "      - {url: /}\n", "a.yaml:3:7: opening feeder: open none.csv"},
	} {
		_, err := script.Parse("a.yaml", []byte(c.text), "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// urls takes a walk to its end and returns what is asked for; each answer gives set the
// chance to change what the user knows.
func urls(t *testing.T, f *script.File, set func(known script.Values)) []string {
	t.Helper()
	w, known, rng := script.Walk{Program: f.Programs()[0]}, f.Know(), rand.New(rand.NewPCG(1, 1))
	f.Begin(7, f.Know(), known)
	var all []string
	for range 10_000 {
		q, _, more := w.Next(known, rng)
		if !more {
			return all
		}
		if q == nil {
			continue
		}
		req, err := q.Build(known)
		if err != nil {
			return append(all, err.Error())
		}
		all = append(all, req.Method+" "+req.URL.RequestURI())
		if set != nil {
			set(known)
		}
	}
	t.Fatal("the walk has no end")
	return nil
}

func TestWalk(t *testing.T) {
	for _, c := range []struct {
		name, steps string
		want        []string
	}{
		{"in turn", "      - {url: \"/u/{{.user}}\"}\n      - {url: /b, body: x, think: 1s}\n", []string{"GET /u/7", "POST /b"}},
		{"a loop", "      - {repeat: 2, steps: [{url: /a}, {repeat: 2, steps: [{url: /b}]}]}\n      - {url: /c}\n",
			[]string{"GET /a", "GET /b", "GET /b", "GET /a", "GET /b", "GET /b", "GET /c"}},
		{"a condition", "      - {when: {value: user, is: 7}, steps: [{url: /yes}], else: [{url: /no}]}\n      - {when: {value: user, above: 7}, steps: [{url: /yes2}], else: [{url: /no2}]}\n",
			[]string{"GET /yes", "GET /no2"}},
		{"below and matches", "      - {when: {value: user, below: 7.5}, steps: [{url: /a}]}\n      - {when: {value: user, matches: \"^8\"}, steps: [{url: /b}]}\n      - {when: {value: user, is_not: 8}, steps: [{url: /c}]}\n",
			[]string{"GET /a", "GET /c"}},
		{"while", "      - {repeat: 9, while: {value: user, is: 8}, steps: [{url: /a}]}\n      - {url: /b}\n", []string{"GET /b"}},
		{"never", "      - {when: {value: user, set: false}, steps: [{url: /a}]}\n      - {url: /b}\n", []string{"GET /b"}},
		{"unset", "      - {url: /a, take: {id: {json: id, optional: true}}}\n      - {url: \"/b/{{.id}}\"}\n", []string{"GET /a", script.ErrUnfilled.Error()}},
	} {
		if got := urls(t, parse(t, c.steps), nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestChance(t *testing.T) {
	got := urls(t, parse(t, "      - {repeat: 1000, steps: [{when: {chance: 30%}, steps: [{url: /a}]}]}\n"), nil)
	// Outside 231 to 369, five deviations, once in two million seeds.
	if len(got) < 231 || len(got) > 369 {
		t.Errorf("a chance of 30 %% came %d times in 1,000", len(got))
	}
}

func TestFeed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.csv"), []byte("name\na b\nc&d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := script.Parse(filepath.Join(dir, "a.yaml"), []byte(strings.Replace(head, "flows:", "feed: p.csv\nflows:", 1)+"      - {url: \"/{{.name}}\"}\n"), "http://127.0.0.1:2")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{1: "http://127.0.0.1:2/a%20b", 2: "http://127.0.0.1:2/c%26d", 3: "http://127.0.0.1:2/a%20b"} {
		w, known := script.Walk{Program: f.Programs()[0]}, f.Know()
		f.Begin(n, f.Know(), known)
		q, _, _ := w.Next(known, nil)
		if req, err := q.Build(known); err != nil || req.URL.String() != want {
			t.Errorf("user %d asks for %v, %v, want %s", n, req.URL, err, want)
		}
	}
}

func TestThink(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for text, want := range map[string]struct{ mean, lo, hi time.Duration }{
		"2s":                {2 * time.Second, 2 * time.Second, 2 * time.Second},
		"uniform:1s-3s":     {2 * time.Second, time.Second, 3 * time.Second},
		"exponential:2s":    {2 * time.Second, 0, time.Hour},
		"lognormal:2s/0.5":  {2266 * time.Millisecond, 0, time.Hour}, // 2·exp(0.5²/2)
		"lognormal:10m/4":   {0, 0, time.Hour},
		"exponential:59m1s": {0, 0, time.Hour},
	} {
		th, err := script.ParseThink(text)
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		const n = 20_000
		for range n {
			d := th.Draw(rng)
			if d < want.lo || d > want.hi {
				t.Fatalf("%s: drew %v, want %v to %v", text, d, want.lo, want.hi)
			}
			sum += d
		}
		if mean := sum / n; want.mean > 0 && (mean < want.mean*96/100 || mean > want.mean*104/100) {
			t.Errorf("%s: the mean is %v, want about %v", text, mean, want.mean)
		}
	}
	for _, text := range []string{"", "2", "uniform:1s", "uniform:3s-1s", "lognormal:1s", "lognormal:1s/-1", "gamma:1s", "2h"} {
		if _, err := script.ParseThink(text); err == nil {
			t.Errorf("%q: no error, want one", text)
		}
	}
}

// TestRates has users arrive at a rate that YAML takes for a number.
func TestRates(t *testing.T) {
	for text, want := range map[string]float64{"50": 50, "0.5": 0.5, "1e2": 100, "50/s": 50, "2k": 2000} {
		f, err := script.Parse("a.yaml", []byte(strings.Replace(head, "10/s", text, 1)+"      - {url: /}\n"), "")
		if err != nil || f.Rate() != want {
			t.Errorf("arrive: %s: error %v, want %v sessions a second", text, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "true", "[1]", "010"} {
		if _, err := script.Parse("a.yaml", []byte(strings.Replace(head, "10/s", text, 1)+"      - {url: /}\n"), ""); err == nil {
			t.Errorf("arrive: %s: no error, want one", text)
		}
	}
}

// TestStretched has the phases of a profile end when they should, and a threshold be judged once.
func TestStretched(t *testing.T) {
	f, err := script.Parse("a.yaml", []byte(strings.Replace(head, "flows:", "fail_if: [errors>5%]\nflows:", 1)+"      - {url: /}\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []time.Duration{10 * time.Second, 7 * time.Second, time.Hour} {
		if g, err := f.As(script.Spike, length); err != nil || g.Duration != length || len(g.FailIf) != 1 {
			t.Errorf("spike of %v: %v with thresholds %v, %v", length, g.Duration, g.FailIf, err)
		}
	}
}

func TestProfiles(t *testing.T) {
	f, err := script.Parse("a.yaml", []byte(strings.Replace(head, "flows:", "fail_if: [p50>1s]\nprofiles: {soak: {duration: 30m, fail_if: [errors>2%]}, spike: {arrive: \"steps:1,2/3s\"}}\nflows:", 1)+"      - {url: /}\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		length  time.Duration
		planned time.Duration
		rate    float64
		limit   string
	}{
		{script.Smoke, 0, 10 * time.Second, 1, "errors>0%"},
		{script.Pressure, 0, time.Minute, 10, "errors>1%"},
		{script.Pressure, 5 * time.Second, 5 * time.Second, 10, "errors>1%"},
		{script.Stress, 0, 2 * time.Minute, 40, "errors>5%"},
		{script.Spike, 0, 6 * time.Second, 2, "errors>5%"},
		{script.Soak, 0, 30 * time.Minute, 10, "errors>2%"},
		{script.Soak, time.Minute, time.Minute, 10, "errors>2%"},
		{script.Breakpoint, 0, 20 * time.Second, 10, "errors>5%"},
	} {
		g, err := f.As(c.name, c.length)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Planned().Round(time.Millisecond); got != c.planned || g.Rate() != c.rate || len(g.FailIf) != 2 || g.FailIf[1].String() != c.limit {
			t.Errorf("%s in %v: %v at most %v/s, fail if %v, want %v, %v/s, %s", c.name, c.length, got, g.Rate(), g.FailIf, c.planned, c.rate, c.limit)
		}
	}
	if f.Rate() != 10 || len(f.FailIf) != 1 {
		t.Errorf("the file itself has changed: %v/s, %v", f.Rate(), f.FailIf)
	}
	if _, err := f.As("smok", 0); err == nil {
		t.Error("an unknown profile: no error")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head + "      - {url: \"/{{.user}}\", take: {id: {json: \"a[0].b\"}}, think: 1s}\n")
	f.Add(head + "      - {repeat: 3, while: {value: user, above: 1}, steps: [{url: /a}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := script.Parse("f.yaml", []byte(text), "")
		if err != nil {
			if _, ok := err.(shape.Mistakes); !ok {
				t.Errorf("%q: the error is %T, want Mistakes", text, err)
			}
			return
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for _, p := range file.Programs() {
			w, known := script.Walk{Program: p}, file.Know()
			for range 1000 {
				q, _, more := w.Next(known, rng)
				if !more {
					break
				}
				if q != nil {
					q.Build(known)
				}
			}
		}
	})
}
