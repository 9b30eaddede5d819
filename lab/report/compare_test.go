package report_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

func TestCompare(t *testing.T) {
	first, second := synthetic(1), synthetic(2)
	for i := range second.Trials { // the flattened arm got dearer
		if tr := &second.Trials[i]; tr.Arm == "flattened" {
			tr.Metrics["cpu_per_request"] *= 1.1
		}
	}
	second.Manifest.Env[0].Value = "6.2.0"
	var b strings.Builder
	if err := compareText(&b, analyse(t, first), analyse(t, second), doc.TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", b.String())
}

// Two runs on one machine never find it under the same load; that does not make it
// another one, unless it disturbed one of them.
func TestCompareKnowsTheMachine(t *testing.T) {
	load := func(value, verdict string) []record.Fact {
		return []record.Fact{{Name: "kernel", Value: "6.1.0", Verdict: "ok"}, {Name: "load average", Value: value, Verdict: verdict}}
	}
	newer := load("1.55 2.39 8.22", "note")
	newer[0].Value = "6.2.0"
	const same = "The machine was not the same throughout: "
	for _, tc := range []struct {
		name string
		env  []record.Fact
		want string // "": nothing is said
	}{
		{"as before", load("1.84 4.15 11.30", "ok"), ""},
		{"another moment", load("1.55 2.39 8.22", "note"), ""},
		{"a moment that disturbs", load("9.55 2.39 8.22", "disturbs"), same + "load average 1.84 4.15 11.30, then 9.55 2.39 8.22."},
		{"another kernel", newer, same + "kernel 6.1.0, then 6.2.0."},
	} {
		first, second := synthetic(1), synthetic(2)
		first.Manifest.Env, second.Manifest.Env = load("1.84 4.15 11.30", "ok"), tc.env
		var b strings.Builder
		if err := compareText(&b, analyse(t, first), analyse(t, second), doc.TextOptions{Width: 200}); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); !strings.Contains(text, tc.want) || strings.Contains(text, same) != (tc.want != "") {
			t.Errorf("%s: got\n%s\nwant %q", tc.name, text, tc.want)
		}
	}
}

func TestCompareSaysWhyNot(t *testing.T) {
	program := func(r *record.Run, change func(*record.Program)) {
		p := r.Manifest.Programs["none"]
		change(&p)
		r.Manifest.Programs["none"] = p
	}
	for _, tc := range []struct {
		name   string
		change func(*record.Run)
		want   string
	}{
		{"another control", func(r *record.Run) { program(r, func(p *record.Program) { p.BuildID = "other" }) }, "the controls are different programs"},
		{"a control without build ID", func(r *record.Run) { program(r, func(p *record.Program) { p.BuildID = "" }) }, "no build ID"},
		{"other arguments", func(r *record.Run) { program(r, func(p *record.Program) { p.Args = nil }) }, "different arguments"},
		{"another environment", func(r *record.Run) { r.Manifest.Study.Arms[0].Env = []string{"GOGC=off"} }, `different environments ([] and ["GOGC=off"])`},
		{"another sink", func(r *record.Run) { r.Manifest.Study.Arms[0].Sink = "pipe" }, "output went elsewhere (discard and pipe)"},
		{"another way to load", func(r *record.Run) { r.Manifest.Study.Arms[0].Closed = []string{"-c", "64"} }, "load by different arguments"},
		{"another offered rate", func(r *record.Run) { r.Manifest.Rates = map[string]float64{"half": 9_000} }, "workload half: the offered rates differ (12300/s and 9000/s)"},
		{"other requests", func(r *record.Run) {
			r.Manifest.Study.Workloads[0].Targets = []study.Target{{Path: "/other"}}
		}, "asked for other requests"},
		{"another workload", func(r *record.Run) { r.Manifest.Study.Workloads[0].Connections = 8 }, "declared differently"},
		{"longer trials", func(r *record.Run) { r.Manifest.Study.Trial.Measure = 5 * time.Second }, "different lengths"},
		{"another warm-up", func(r *record.Run) { r.Manifest.Study.Trial.WarmUp = time.Second },
			"different lengths (2s measured after 300ms, in slices of 200ms and 2s measured after 1s, in slices of 200ms)"},
		{"shared CPUs", func(r *record.Run) { r.Manifest.Pinning.Disjoint = false }, "CPUs of their own in one run only"},
		{"more CPUs", func(r *record.Run) { r.Manifest.Pinning.Specimen = []int{0, 2, 4} }, "the controls ran on 1 CPU and on 3"},
		{"no workload in common", func(r *record.Run) {
			for i := range r.Manifest.Study.Workloads {
				r.Manifest.Study.Workloads[i].Name += "2"
			}
			for i := range r.Trials {
				r.Trials[i].Workload += "2"
			}
		}, "no arm, workload and metric in common"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			second := synthetic(2)
			tc.change(second)
			var b strings.Builder
			err := compareText(&b, analyse(t, synthetic(1)), analyse(t, second), doc.TextOptions{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || b.Len() > 0 {
				t.Errorf("got %v and %d bytes, want %q and none", err, b.Len(), tc.want)
			}
		})
	}
}

// An output that is left out is one that is discarded, and a trial without lengths has
// the usual ones.
func TestCompareTakesDefaults(t *testing.T) {
	second := synthetic(2)
	second.Manifest.Study.Arms[0].Sink = "discard"
	second.Manifest.Study.Trial = study.Trial{WarmUp: 300 * time.Millisecond, Measure: 2 * time.Second, Slice: 200 * time.Millisecond}
	if err := compareText(io.Discard, analyse(t, synthetic(1)), analyse(t, second), doc.TextOptions{}); err != nil {
		t.Error(err)
	}
}

// What one run tells and the other does not is named, or nobody would miss it.
func TestCompareTellsWhatLacks(t *testing.T) {
	const whole = "Not compared"
	for _, tc := range []struct {
		name string
		lose func(*record.Trial)
		want string // "": nothing lacks
	}{
		{"nothing", func(*record.Trial) {}, ""},
		{"an arm", func(tr *record.Trial) {
			if tr.Arm == "flattened" {
				tr.Invalid = []string{"the arm died under load"}
			}
		}, "half arm flattened"},
		{"a metric", func(tr *record.Trial) { delete(tr.Metrics, "cpu_per_request") }, "half cpu_per_request"},
		{"a metric of an arm", func(tr *record.Trial) {
			if tr.Arm == "flattened" {
				delete(tr.Metrics, "cpu_per_request")
			}
		}, "half cpu_per_request of flattened"},
		{"a scale", func(tr *record.Trial) {
			if tr.Block == 3 {
				tr.Metrics["cpu_per_request"] = 0
			}
		}, "half cpu_per_request"},
	} {
		for _, swap := range []bool{false, true} {
			first, second := synthetic(1), synthetic(2)
			for i := range second.Trials {
				tc.lose(&second.Trials[i])
			}
			if swap {
				first, second = second, first
			}
			var b strings.Builder
			if err := compareText(&b, analyse(t, first), analyse(t, second), doc.TextOptions{}); err != nil {
				t.Fatal(err)
			}
			_, told, found := strings.Cut(b.String(), whole)
			if found != (tc.want != "") || !strings.Contains(fold(told), tc.want) {
				t.Errorf("%s, in the first %v: got\n%s\nwant %q", tc.name, swap, b.String(), tc.want)
			}
		}
	}
}

// Names of a run that somebody else made do not reach the terminal as they are.
func TestCompareIsPrintable(t *testing.T) {
	const evil = "half\x1b[2J"
	renamed := func(seed uint64) *record.Run {
		r := synthetic(seed)
		for _, w := range []*string{&r.Manifest.Study.Workloads[0].Name, &r.Manifest.Study.Primary.Workload} {
			*w = evil
		}
		for i := range r.Trials {
			r.Trials[i].Workload = evil
		}
		return r
	}
	first, second := renamed(1), renamed(2)
	for i := range second.Trials { // two metrics: one unchanged, one that the first alone tells
		delete(second.Trials[i].Metrics, "alloc_bytes")
	}
	var b strings.Builder
	if err := compareText(&b, analyse(t, first), analyse(t, second), doc.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	first.Manifest.Study.Name, first.Manifest.ID = evil, evil
	if err := report.Bench(&b, first); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "Unchanged") || !strings.Contains(text, "Not compared") {
		t.Errorf("got\n%q\nwant no escape sequence, and both lists", text)
	}
}

// Runs too short for any interval are not compared, whichever of the two it is.
func TestCompareTakesBlocks(t *testing.T) {
	shortened := func(seed uint64, blocks int) *record.Run {
		r := synthetic(seed)
		r.Trials = slices.DeleteFunc(r.Trials, func(tr record.Trial) bool { return tr.Block >= blocks })
		return r
	}
	first, second := synthetic(1).Manifest.ID, synthetic(2).Manifest.ID
	for _, tc := range []struct {
		name string
		a, b int
		want string // "": they are compared
	}{
		{"both", 1, 2, "workload half: run " + first + " has 1 block and run " + second + " has 2 blocks; a change has an interval from 8 blocks in each run on"},
		{"the first", 7, 8, "workload half: run " + first + " has 7 blocks; a change has an interval from 8 blocks"},
		{"the second", 8, 1, "workload half: run " + second + " has 1 block; a change has an interval from 8 blocks"},
		{"none", 8, 8, ""},
	} {
		var b strings.Builder
		err := compareText(&b, analyse(t, shortened(1, tc.a)), analyse(t, shortened(2, tc.b)), doc.TextOptions{})
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || b.Len() > 0):
			t.Errorf("%s: got %v and %d bytes, want %q and none", tc.name, err, b.Len(), tc.want)
		}
	}
}

// compareText writes the page of two runs, if they can be compared.
func compareText(w io.Writer, first, second *verdict.Analysis, o doc.TextOptions) error {
	p, err := report.Compare(first, second)
	if err != nil {
		return err
	}
	return doc.Text(w, p, o)
}
