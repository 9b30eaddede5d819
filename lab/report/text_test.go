package report_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

func text(t *testing.T, a *verdict.Analysis, o doc.TextOptions) string {
	t.Helper()
	var b strings.Builder
	if err := report.Text(&b, a, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	a := analyse(t, synthetic(1))
	golden(t, "nesting-80.txt", text(t, a, doc.TextOptions{Width: 80}))
	golden(t, "nesting-120.txt", text(t, a, doc.TextOptions{Width: 120}))
}

// A run whose control lacks a trial that counts ran all its blocks, even so.
func TestAllPlannedBlocksRan(t *testing.T) {
	r := synthetic(1)
	r.Manifest.Study.Looks = []int{8}
	for i := range r.Trials {
		if tr := &r.Trials[i]; tr.Block == 0 && tr.Arm == "none" && !tr.Twin {
			tr.Invalid = []string{"achieved 7763 requests a second of 8000 offered"}
		}
	}
	const want = "8 blocks; may stop after 8 blocks; ran all planned blocks"
	if got := text(t, analyse(t, r), doc.TextOptions{}); !strings.Contains(got, want) {
		t.Errorf("want %q in\n%s", want, got)
	}
}

// The page for a pull request has what the text has, and looks up what it leaves out.
func TestMarkdown(t *testing.T) {
	a := analyse(t, synthetic(1))
	var b strings.Builder
	if err := doc.Markdown(&b, report.Page(nil, a)); err != nil {
		t.Fatal(err)
	}
	golden(t, "nesting.md", b.String())
}

// A pipe gets every name whole, however wide the table.
func TestTextOfPipeCutsNothing(t *testing.T) {
	r := synthetic(1)
	long := strings.Repeat("an-arm-of-a-long-name-", 12)
	r.Manifest.Study.Arms[1].Name = long
	for i := range r.Trials {
		if r.Trials[i].Arm == "one" {
			r.Trials[i].Arm = long
		}
	}
	got := text(t, analyse(t, r), doc.TextOptions{})
	if strings.Contains(got, "…") || strings.Count(got, long) < 10 {
		t.Errorf("the name is there %d times whole, want every time, in\n%s", strings.Count(got, long), got)
	}
}

func TestTextKeepsToItsWidth(t *testing.T) {
	a := analyse(t, synthetic(1))
	for _, width := range []int{44, 60, 72, 80, 100, 132} {
		for line := range strings.Lines(text(t, a, doc.TextOptions{Width: width})) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > width || strings.HasSuffix(line, " ") {
				t.Errorf("width %d: a line of %d columns: %q", width, n, line)
			}
		}
	}
}

// TestColorChangesNothingElse: without its escapes the coloured text is the
// plain one.
func TestColorChangesNothingElse(t *testing.T) {
	a := analyse(t, synthetic(1))
	colored := text(t, a, doc.TextOptions{Color: true})
	escape := regexp.MustCompile("\x1b\\[[0-9;]*m")
	if !escape.MatchString(colored) {
		t.Error("no colour with Color set")
	}
	if got, want := escape.ReplaceAllString(colored, ""), text(t, a, doc.TextOptions{}); got != want {
		for i, line := range strings.Split(want, "\n") {
			if bare := strings.Split(got, "\n")[i]; bare != line {
				t.Errorf("line %d without escapes: got %q, want %q", i+1, bare, line)
			}
		}
	}
}

// TestTextOfPartialRuns: whatever is missing, the text says what it can.
func TestTextOfPartialRuns(t *testing.T) {
	whole := synthetic(1)
	for _, n := range []int{0, 1, 2, 7, 13, len(whole.Trials) / 2} {
		r := *whole
		r.Trials = whole.Trials[:n]
		got := text(t, analyse(t, &r), doc.TextOptions{})
		for _, bad := range []string{"NaN", "%!", "Inf", "∞"} {
			if strings.Contains(got, bad) {
				t.Errorf("%d trials: the text holds %q:\n%s", n, bad, got)
			}
		}
	}
}

// Trials with more than one reason not to count are counted for each: it is said.
func TestTrialsOfManyReasons(t *testing.T) {
	const said = "79 of them valid; 1 invalid, some for several reasons;"
	for _, many := range []bool{false, true} {
		r := synthetic(1)
		if bad := &r.Trials[len(r.Trials)-1]; many {
			bad.Invalid = append(bad.Invalid, "achieved 740 requests a second of 983 offered")
		}
		got := strings.Join(strings.Fields(text(t, analyse(t, r), doc.TextOptions{})), " ")
		if strings.Contains(got, said) != many {
			t.Errorf("second reason %t: want %q just then, in\n%s", many, said, got)
		}
	}
}

// What the host took is told where it took any, with advice where that was much.
func TestHost(t *testing.T) {
	const advice = "gives narrower intervals"
	for share, want := range map[float64]string{0: "", 0.01: "gave others 1.0 % of the CPU time that this machine asked for", 0.2: "gave others 20.0 % of the CPU time that this machine asked for"} {
		r := synthetic(1)
		for _, trial := range r.Trials {
			trial.Metrics["host_withheld"] = share
		}
		got := strings.Join(strings.Fields(text(t, analyse(t, r), doc.TextOptions{})), " ")
		if strings.Contains(got, "gave others") != (share > 0) || !strings.Contains(got, want) || strings.Contains(got, advice) != (share > 0.02) {
			t.Errorf("%v: want %q, and advice only where it was much, in\n%s", share, want, got)
		}
	}
}

type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestErrorsOfWritingAreReturned(t *testing.T) {
	r := synthetic(1)
	a := analyse(t, r)
	for name, write := range map[string]func(*full) error{
		"Text":     func(w *full) error { return report.Text(w, a, doc.TextOptions{}) },
		"Markdown": func(w *full) error { return doc.Markdown(w, report.Page(nil, a)) },
		"JSON":     func(w *full) error { return report.JSON(w, a) },
		"Bench":    func(w *full) error { return report.Bench(w, r) },
		"Compare":  func(w *full) error { return compareText(w, a, a, doc.TextOptions{}) },
	} {
		if err := write(&full{100}); !errors.Is(err, errFull) {
			t.Errorf("%s to a full disk: got %v", name, err)
		}
	}
}

// What is less than the clocks can tell is said to be less than that.
func TestResidualBelowResolution(t *testing.T) {
	r := synthetic(1)
	for i := range r.Trials {
		m := r.Trials[i].Metrics
		if m["residual_cpu"] = -160; r.Trials[i].Arm == "three" {
			m["residual_cpu"] = 37_000
		}
	}
	if got := text(t, analyse(t, r), doc.TextOptions{}); !strings.Contains(got, "< 1.22 µs") || !strings.Contains(got, "37.0 µs") || strings.Contains(got, "160 ns") {
		t.Errorf("want none less than 1.22 µs (30 ms over 24,600 requests), and three 37.0 µs:\n%s", got)
	}
}

// A check that "no effect" contradicts shows the interval that says so, in the text and in JSON.
func TestIntervalOfNoEffect(t *testing.T) {
	r := synthetic(1)
	s := &r.Manifest.Study
	s.Claims = []study.Claim{{ID: "P", Checks: []study.Check{{Kind: study.Effect, Says: "nothing", Metric: "cpu_per_request", Workload: "half", Arm: "three", Direction: "more"}}}}
	for _, none := range []bool{true, false} {
		if s.Threshold = 0.01; none {
			s.Threshold = 0.5
		}
		a := analyse(t, r)
		level := map[bool]float64{true: 0.98, false: 0.99}[none]
		_, got, _ := strings.Cut(text(t, a, doc.TextOptions{}), "Published claims")
		got, _, _ = strings.Cut(got, "Goals")
		for shown, want := range map[string]int{"98 % interval": map[bool]int{true: 2}[none], "99 % interval": map[bool]int{true: 1, false: 3}[none]} { // of sentence, difference and change
			if n := strings.Count(got, shown); n != want || strings.Contains(got, "no effect of practical size") != none {
				t.Errorf("no effect %v: %q is there %d times, want %d, in\n%s", none, shown, n, want, got)
			}
		}
		var b strings.Builder
		var out struct {
			Claims []struct {
				Checks []struct {
					Measured struct {
						By struct{ Level float64 } `json:"decided_by"`
					}
				}
			}
		}
		if err := errors.Join(report.JSON(&b, a), json.Unmarshal([]byte(b.String()), &out)); err != nil || out.Claims[0].Checks[0].Measured.By.Level != level {
			t.Errorf("no effect %v: JSON has %+v, %v, want the level %g", none, out.Claims, err, level)
		}
	}
}

// TestTwoBlocksForetellNothing holds that the tables name no number of further blocks by what two
// blocks lie apart, and do by more.
func TestTwoBlocksForetellNothing(t *testing.T) {
	for blocks, told := range map[int]bool{2: false, 4: true} {
		r := synthetic(1)
		r.Manifest.Study.Claims, r.Manifest.Study.Goals = nil, nil
		r.Trials = slices.DeleteFunc(r.Trials, func(t record.Trial) bool { return t.Block >= blocks })
		got := text(t, analyse(t, r), doc.TextOptions{})
		if !strings.Contains(got, "undecided") || regexp.MustCompile(`undecided, ~\d+ more`).MatchString(got) != told {
			t.Errorf("%d blocks: a number foretold %v, want %v, in\n%s", blocks, !told, told, got)
		}
	}
}
