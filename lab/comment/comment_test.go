package comment_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
)

var update = flag.Bool("update", false, "write the golden files anew")

// analyse makes a run of 16 blocks in which arm i takes factors[i] times the control's CPU.
func analyse(t *testing.T, factors ...float64) *verdict.Analysis {
	t.Helper()
	s := study.Study{Name: "ab", Control: "api@main", Twin: true, Threshold: 0.01, Arms: []study.Arm{{Name: "api@main"}},
		Workloads: []study.Workload{{Name: "load", Schedule: "constant", Rate: study.Rate{PerSecond: 2000}, Connections: 64}},
		Primary:   study.Primary{Metric: "cpu_per_request", Workload: "load"}}
	factor := map[string]float64{"api@main": 1}
	for i, f := range factors {
		name := "api"
		if i > 0 {
			name = fmt.Sprintf("api-%d", i+1)
		}
		s.Arms = append(s.Arms, study.Arm{Name: name})
		factor[name] = f
	}
	r := &record.Run{Manifest: record.Manifest{Schema: record.Schema, ID: "20260102-150405-ab", Study: s, Seed: 7, Outcome: "decided", Tare: "v0.1.0",
		Started: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Command: []string{"tare", "ab", "./cmd/api@main", "./cmd/api"}}}
	rng := rand.New(rand.NewPCG(3, 7))
	for block := range 16 {
		trial := func(arm string, twin bool) {
			noise := func() float64 { return math.Exp(0.003 * rng.NormFloat64()) }
			r.Trials = append(r.Trials, record.Trial{Seq: len(r.Trials), Block: block, Arm: arm, Twin: twin, Workload: "load", Requests: 20_000, Steady: true, Elapsed: time.Second,
				Metrics: map[string]float64{"cpu_per_request": 30_000 * factor[arm] * noise(), "response_p50": 200_000 * noise(), "rss_peak": 2e7 * noise(), "throughput": 2000}})
		}
		trial("api@main", false)
		trial("api@main", true)
		for _, a := range s.Arms[1:] {
			trial(a.Name, false)
		}
	}
	a, err := verdict.Analyse(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// changed is what a captures' comparison finds where so many owners differ.
func changed(arm string, owners int) comment.Change {
	r := &diff.Result{Per: "request"}
	for i := range owners {
		name := fmt.Sprintf("example.com/shop/audit%d.(*handler).ServeHTTP", i)
		at := fmt.Sprintf("shop/audit%d/audit.go:12", i)
		size := float64(3300 - i)
		r.Owners = append(r.Owners, diff.Row{Kind: "middleware", Owner: name, Where: at, A: 1200, B: 1200 + size, Diff: size, Lo: size - 200, Hi: size + 200, Tested: true, Differs: true})
		for _, f := range []string{name, "example.com/shop/audit.sign", "crypto/sha256.block", "example.com/shop/audit.encode", "fmt.Fprintf"} {
			r.Functions = append(r.Functions, diff.Row{Owner: name, Where: at, Function: f, A: 0, B: size, Diff: size, Tested: true, Differs: true})
		}
	}
	r.Owners = append(r.Owners, diff.Row{Owner: "main.orders", A: 9000, B: 9100, Diff: 100, Lo: -200, Hi: 400, Tested: true})
	return comment.Change{Workload: "load", Arm: arm, CPU: r}
}

func markdown(t *testing.T, s comment.Source) string {
	t.Helper()
	var b strings.Builder
	if err := comment.Markdown(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// outside is the comment without what is folded.
func outside(text string) string {
	head, rest, _ := strings.Cut(text, "<details>")
	return head + rest[strings.LastIndex(rest, "</details>")+len("</details>"):]
}

func TestMarkdown(t *testing.T) {
	for name, s := range map[string]comment.Source{
		"failed":       {Analysis: analyse(t, 1.11), Changes: []comment.Change{changed("api", 1)}, Command: []string{"tare", "gate", "--max", "cpu_per_request<=5%", "release.yaml"}},
		"passed":       {Analysis: analyse(t, 1), Changes: []comment.Change{changed("api", 0)}},
		"inconclusive": {Analysis: analyse(t, 1.05)},
	} {
		t.Run(name, func(t *testing.T) {
			first := s.Analysis.Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: 0.05}})
			s.Gates = first
			got := outside(markdown(t, s))
			path := filepath.Join("testdata", name+".md")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("differs from %s (go test ./lab/comment -update writes it anew); got:\n%s", path, got)
			}
		})
	}
}

// open are the gates of a run whose failures no second run confirmed.
func open(gates []verdict.Gated) []verdict.Gated {
	gates = slices.Clone(gates)
	for i := range gates {
		gates[i].Result = bound.Inconclusive
	}
	return gates
}

// TestLength wants at most 25 lines outside of the fold with the marker that is put before
// them, however much there is to show, and a comment that GitHub takes.
func TestLength(t *testing.T) {
	many := make([]float64, 12)
	for i := range many {
		many[i] = 1.2
	}
	s := comment.Source{Analysis: analyse(t, many...), Changes: []comment.Change{changed("api", 9), changed("api-2", 9)}}
	first := s.Analysis.Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: 0.05}, {Metric: "response_p50", Harm: 0.05}, {Metric: "startup", Harm: 0.05}})
	for _, gates := range [][]verdict.Gated{nil, open(first), first} {
		s.Gates = gates
		text := markdown(t, s)
		if n := strings.Count("<!-- marker -->\n"+outside(text), "\n"); n > 25 {
			t.Errorf("%d lines, want at most 25:\n%s", n, outside(text))
		}
		if !strings.Contains(text, "How far to trust this") || len(text) > 65_536 {
			t.Errorf("the comment has %d bytes, want the whole report in at most 65,536", len(text))
		}
	}
	for range 400 {
		s.Analysis.Warnings = append(s.Analysis.Warnings, fmt.Errorf("%s", strings.Repeat("a long warning ", 20)))
	}
	if text := markdown(t, s); len(text) > 65_536 || !strings.Contains(text, "too long for a comment") {
		t.Errorf("the comment has %d bytes, want the report left out with a word about it", len(text))
	}
}

// TestWorstFirst wants what failed above what holds.
func TestWorstFirst(t *testing.T) {
	s := comment.Source{Analysis: analyse(t, 1, 1.3)}
	first := s.Analysis.Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: 0.05}})
	s.Gates = first
	if first[0].Result != bound.Held || first[1].Result != bound.Failed {
		t.Fatalf("gates came out %v and %v", first[0].Result, first[1].Result)
	}
	text := markdown(t, s)
	if strings.Index(text, "**failed") > strings.Index(text, "held:") || !strings.Contains(text, "## Failed: CPU per request of api-2 is +3") {
		t.Errorf("got\n%s", outside(text))
	}
}

// The ending has a sentence for each budget, and the owners that differ. It does not repeat
// the headline, which the report begins with, and says how owners can differ while that is
// not decided.
func TestEnding(t *testing.T) {
	text := func(s comment.Source) string {
		var b strings.Builder
		if err := doc.Text(&b, doc.Page{Blocks: comment.Ending(s)}, doc.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	s := comment.Source{Analysis: analyse(t, 1.11), Changes: []comment.Change{changed("api", 1)}}
	got := text(s)
	if strings.Contains(got, s.Analysis.Headline) || !strings.Contains(got, "audit0.(*handler).ServeHTTP") || strings.Contains(got, "main.orders") || strings.Contains(got, "not decided") {
		t.Errorf("got\n%s\nwant the owner that differs alone", got)
	}
	undecided, err := verdict.Analyse(&record.Run{Manifest: s.Analysis.Manifest})
	if err != nil {
		t.Fatal(err)
	}
	open := comment.Source{Analysis: undecided, Changes: s.Changes, Profiles: comment.Profiles{Planned: 12, Usable: 9}}
	if got := text(open); !strings.Contains(got, "from 9 profiles after the 0 blocks by which the headline is judged") {
		t.Errorf("nothing is decided: got\n%s\nwant how that and the owners relate", got)
	}
	s.Gates = s.Analysis.Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: 0.05}, {Metric: "alloc_bytes", Harm: 0.05}, {Metric: "rss_peak", Harm: 0.05}})
	for _, want := range []string{"- Failed: CPU per request of api is +1", "- Passed: memory at the peak (RSS) of api is ", "- Inconclusive: allocated per request"} {
		if got := text(s); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant a line %q", got, want)
		}
	}
	s.Analysis.Manifest.Programs = map[string]record.Program{"api@main": {Size: 8 << 20}, "api": {Size: 9 << 20}}
	if got := text(s); !strings.Contains(got, "Size of the program: api@main 8.00 MiB, api 9.00 MiB (+12.5 %).") {
		t.Errorf("got\n%s\nwant the sizes of the programs", got)
	}
}

// Where no owner is shown, the reason is: nothing was planned, no time was left, nothing
// counts, too little was seen, or there is no difference.
func TestWithoutOwners(t *testing.T) {
	equal, unseen := changed("api", 0), changed("api", 0)
	unseen.CPU = &diff.Result{Owners: []diff.Row{{Owner: "main.orders", A: 9000, B: 9100}}}
	analysis := analyse(t, 1)
	for _, tt := range []struct {
		changes  []comment.Change
		profiles comment.Profiles
		want     string
	}{
		{nil, comment.Profiles{}, "is not known: the study takes no profiles."},
		{nil, comment.Profiles{Unplanned: "that needs root"}, "is not known: that needs root."},
		{nil, comment.Profiles{Planned: 12, Budget: 90 * time.Second}, "the budget left time for 0 of 12 profiles. --budget 1m30s has time for all."},
		{nil, comment.Profiles{Planned: 12, Lost: "api under load: no capture counts: ebpf: not permitted\nat all"}, "is not known: api under load: no capture counts: ebpf: not permitted at all."},
		{nil, comment.Profiles{Planned: 12}, "the run ended before its 12 profiles."},
		{[]comment.Change{unseen}, comment.Profiles{Planned: 12, Usable: 12}, "saw too little of the services to compare owners. A higher rate"},
		{[]comment.Change{unseen}, comment.Profiles{Planned: 12, Usable: 2, Budget: time.Minute}, "saw too little of the services to compare owners. --budget 1m0s"},
		{[]comment.Change{equal}, comment.Profiles{Planned: 12, Usable: 2, Budget: time.Minute}, "by more than chance in 2 of 12 profiles. --budget 1m0s has time for all."},
		{[]comment.Change{equal}, comment.Profiles{Planned: 12, Usable: 12}, "No owner's cost differs by more than chance.\n"},
	} {
		if got := markdown(t, comment.Source{Analysis: analysis, Changes: tt.changes, Profiles: tt.profiles}); !strings.Contains(got, tt.want) {
			t.Errorf("%+v: want %q in\n%s", tt.profiles, tt.want, outside(got))
		}
	}
}

func TestEqual(t *testing.T) {
	var b strings.Builder
	e := comment.Equal{Study: "ab", Control: "api@main", BuildID: strings.Repeat("5e", 32), Command: []string{"tare", "ab", "./a@main", "./a"}}
	if err := doc.Markdown(&b, e.Page()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Passed: the programs are identical", "`5e5e5e5e5e5e`", "`tare ab ./a@main ./a`"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got %q, want it to say %q", b.String(), want)
		}
	}
}
