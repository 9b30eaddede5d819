package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
)

// profiled is the synthetic run with captures of three arms by three sources.
func profiled(seed uint64) *record.Run {
	r := synthetic(seed)
	profile(r, "none", "three", "flattened")
	return r
}

// profile adds captures of arms to a run, the control first. The second arm
// counts what its middlewares cost.
func profile(r *record.Run, arms ...string) {
	s := &r.Manifest.Study
	s.Attribute = study.Attribute{For: time.Second, Repeat: 8, Truth: study.Truth{
		Path: "/truth", CPU: 0.05, Least: time.Microsecond, Bytes: 0.02, Waiting: 0.1, Bare: map[string]string{arms[1]: arms[0]},
	}}
	s.Attribute.Arms, s.Attribute.Workloads = arms, map[string][]study.Source{"half": {study.Pprof, study.EBPF, study.Trace}}
	rng := rand.New(rand.NewPCG(r.Manifest.Seed, 21))
	for round := range 8 {
		for i, arm := range arms {
			c := record.Capture{
				Seq: len(r.Captures), Round: round, Arm: arm, Workload: "half", Sources: []study.Source{study.Pprof, study.EBPF, study.Trace},
				Elapsed: time.Second, Requests: 6000, Metrics: map[string]float64{"handlers_cpu": 2000, "memory_cpu": 4000, "scheduling_cpu": 900, "kernel_cpu": 9000},
			}
			if i == 1 {
				c.Truth = map[string]record.Truth{"spin": {Calls: 1, CPU: 2000}, "alloc": {Calls: 1, CPU: 400, Bytes: 1024, Waiting: 5000}}
			}
			for _, source := range c.Sources {
				c.Seen = append(c.Seen, seenBy(source, i > 0, rng))
			}
			r.Captures = append(r.Captures, c)
		}
	}
	r.Captures[0].Warnings = []string{"ebpf: 3 samples were lost"}
}

// seenBy is what a source saw of an arm, with middlewares or without.
func seenBy(source study.Source, middlewares bool, rng *rand.Rand) record.Seen {
	noise := func(v float64) float64 { return v * math.Exp(0.01*rng.NormFloat64()) }
	b := &cost.Bill{Source: string(source), Seconds: 1, Requests: 6000, Per: "request"}
	add := func(kind, owner, where string, self, bytes float64, causes ...cost.Share) {
		it := cost.Item{Kind: kind, Owner: owner, Where: where, Self: self, Bytes: bytes, Objects: bytes / 64, GC: bytes / 10, Causes: causes}
		if source == study.Trace {
			it = cost.Item{Kind: kind, Owner: owner, Where: where, Wait: 2 * self}
		} else if source == study.EBPF {
			it.Bytes, it.Objects, it.GC = 0, 0, 0
		}
		b.CPU += it.Self
		b.Bytes += it.Bytes
		b.Items = append(b.Items, it)
	}
	kernel, own := noise(9000), noise(6000)
	add("engine", "net/http: connection", "", kernel+own, 900, cost.Share{Cause: "kernel", Value: kernel}, cost.Share{Cause: "own", Value: own})
	h := noise(1500)
	add("handler", "nesting.listUsers", "nesting/main.go:62", h, 300, cost.Share{Cause: "json", Value: h})
	add("runtime", "scheduler", "", 30, 0, cost.Share{Cause: "scheduling", Value: 30})
	if middlewares {
		spin, alloc := noise(2000), noise(400)
		add("middleware", "nesting.Spin", "nesting/layers.go:72", spin, 0, cost.Share{Cause: "own", Value: spin})
		add("middleware", "nesting.Alloc", "nesting/layers.go:90", alloc, 1024, cost.Share{Cause: "alloc", Value: alloc})
	}
	return record.Seen{Source: source, Share: 0.98, Bill: b}
}

// owners is the part of a text report that captures bring.
func ownersPart(t *testing.T, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, analyse(t, profiled(3)), doc.TextOptions{Width: width}); err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(b.String(), "\nWho spends what")
	part, _, _ = strings.Cut(part, "\nPublished claims")
	return "Who spends what" + part
}

func TestOwnersText(t *testing.T) {
	golden(t, "owners-80.txt", ownersPart(t, 80))
	golden(t, "owners-120.txt", ownersPart(t, 120))
	for _, width := range []int{40, 60, 80} {
		for line := range strings.Lines(ownersPart(t, width)) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
				t.Errorf("at %d columns a line has %d: %q", width, n, line)
			}
		}
	}
}

// An arm of which no capture counts is missing from what is held against the arms'
// own count: the tally says so.
func TestAccuracyTellsWhatLacks(t *testing.T) {
	r := profiled(3)
	const says = "no capture counts: flattened under half by ebpf, flattened under half by pprof, flattened under half by trace."
	for _, lost := range []bool{false, true} {
		for i := range r.Captures {
			if c := &r.Captures[i]; lost && c.Arm == "flattened" {
				c.Invalid, c.Seen = []string{"no request was answered"}, nil
			}
		}
		var b bytes.Buffer
		if err := report.Text(&b, analyse(t, r), doc.TextOptions{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(b.String()), " "); strings.Contains(text, says) != lost || strings.Contains(text, "Not among them") != lost {
			t.Errorf("lost %v: got\n%s\nwant %q only where they are", lost, b.String(), says)
		}
	}
}

// An arm that is profiled under two workloads is named with them, else without.
func TestAccuracyNamesWorkloads(t *testing.T) {
	r := profiled(3)
	for _, both := range []bool{false, true} {
		if both {
			s := &r.Manifest.Study
			w := s.Workloads[0]
			w.Name = "idle"
			s.Workloads = append(s.Workloads, w)
			s.Attribute.Workloads["idle"] = s.Attribute.Workloads["half"]
			for _, c := range r.Captures {
				c.Workload, c.Seq = "idle", c.Seq+len(r.Captures)
				r.Captures = append(r.Captures, c)
			}
		}
		for _, width := range []int{80, 120} {
			var b bytes.Buffer
			if err := report.Text(&b, analyse(t, r), doc.TextOptions{Width: width}); err != nil {
				t.Fatal(err)
			}
			_, text, _ := strings.Cut(b.String(), "Attribution against")
			if strings.Contains(text, "three, half") != both || strings.Contains(text, "three, idle") != both || !strings.Contains(text, "three") {
				t.Errorf("two workloads %v: got\n%s", both, text)
			}
		}
	}
}

func TestOwnersJSON(t *testing.T) {
	var b bytes.Buffer
	if err := report.JSON(&b, analyse(t, profiled(3))); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Accounts []struct {
			Source string
			Arms   []struct {
				Arm string
				N   int
				CPU struct{ Value float64 } `json:"cpu_ns"`
			}
			Owners []struct {
				Owner string
				In    []struct {
					Arm    string
					Self   struct{ Value, Lo, Hi float64 }  `json:"self_ns"`
					Change *struct{ Value, Lo, Hi float64 } `json:"change_ns"`
				}
			}
		}
		Accuracy []struct {
			Arm, Part, Quantity string
			By                  []struct{ Source, Verdict string }
			Apart               *struct{ Value float64 }
		}
		Warnings []string
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Accounts) != 3 {
		t.Fatalf("%d accounts, want one a source", len(got.Accounts))
	}
	for _, a := range got.Accounts[:2] {
		for i, arm := range a.Arms {
			var sum float64
			for _, o := range a.Owners {
				for _, p := range o.In {
					if p.Arm == arm.Arm {
						sum += p.Self.Value
					}
					if changes := p.Change != nil; changes == (p.Arm == "none") {
						t.Errorf("%s of %s by %s: change %v, want one but for the control", o.Owner, p.Arm, a.Source, p.Change)
					}
				}
			}
			if math.Abs(sum-arm.CPU.Value) > 1e-6*sum || arm.N != 8 || (i == 0) != (arm.Arm == "none") {
				t.Errorf("arm %d by %s is %+v and its owners add up to %g", i, a.Source, arm, sum)
			}
		}
	}
	verdicts := map[string]string{}
	for _, x := range got.Accuracy {
		verdicts[x.Part+" "+x.Quantity] = x.By[0].Verdict
		if x.Quantity == "CPU" && x.Part != verdict.Rest && (len(x.By) != 2 || x.Apart == nil) {
			t.Errorf("%s: %d sources, apart %v, want two that are held against each other", x.Part, len(x.By), x.Apart)
		}
	}
	for what, want := range map[string]string{"spin CPU": "within", "alloc CPU": "within", "alloc bytes": "within", "alloc waiting": "off", "all else CPU": "within"} {
		if verdicts[what] != want {
			t.Errorf("%s is %q, want %q; all are %v", what, verdicts[what], want, verdicts)
		}
	}
	if !strings.Contains(strings.Join(got.Warnings, "\n"), "none: ebpf: 3 samples were lost") {
		t.Errorf("warnings %q lack the capture's", got.Warnings)
	}
}

func TestOwnersHTML(t *testing.T) {
	r := profiled(3)
	r.Captures[1].Seen[0].Bill.Items[1].Owner = "<b>nesting</b>"
	var b bytes.Buffer
	if err := report.HTML(&b, r, analyse(t, r)); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		`<details id="owners-0">`, `<details id="owners-2">`, `<details id="accuracy">`, "nesting/layers.go:72",
		"CPU time by cause", "&lt;b&gt;nesting&lt;/b&gt;", "What requests wait for, half, by trace",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// Three arms by two sources have a bar each, and no bar leaves its drawing.
	bars := regexp.MustCompile(`(?s)<svg class="stack".*?</svg>`).FindAllString(page, -1)
	if len(bars) != 6 {
		t.Errorf("%d bars of causes, want 6", len(bars))
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error("the page shows a figure that is none")
	}
}
