package study_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/study"
)

// house has two workloads for all four arms and one for two of them.
func house(t *testing.T) *study.Study {
	t.Helper()
	s, err := study.ParseFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPlanBlocks(t *testing.T) {
	s := house(t)
	p := study.NewPlan(s, 7, 6)
	if got, want := s.CellsPerBlock(), 5+5+3; got != want {
		t.Fatalf("cells per block: got %d, want %d", got, want)
	}
	if got, want := len(p), 6*s.CellsPerBlock(); got != want {
		t.Fatalf("cells in 6 blocks: got %d, want %d", got, want)
	}
	for b := range 6 {
		block := p.Block(b)
		seen := map[study.Cell]bool{}
		var order []string
		for _, c := range block {
			if c.Block != b {
				t.Errorf("block %d holds %+v", b, c)
			}
			if seen[c] {
				t.Errorf("block %d holds %+v twice", b, c)
			}
			seen[c] = true
			if len(order) == 0 || order[len(order)-1] != c.Workload {
				order = append(order, c.Workload)
			}
		}
		if len(block) != s.CellsPerBlock() {
			t.Errorf("block %d: got %d cells, want %d", b, len(block), s.CellsPerBlock())
		}
		for _, w := range s.Workloads {
			for _, a := range s.ArmsOf(w) {
				if !seen[study.Cell{Block: b, Workload: w.Name, Arm: a.Name}] {
					t.Errorf("block %d lacks %s under %s", b, a.Name, w.Name)
				}
			}
			if !seen[study.Cell{Block: b, Workload: w.Name, Arm: s.Control, Twin: true}] {
				t.Errorf("block %d lacks the twin under %s", b, w.Name)
			}
		}
		want := []string{"closed", "half", "steady"}
		want = append(want[b%3:], want[:b%3]...)
		if !slices.Equal(order, want) {
			t.Errorf("block %d: got workloads in the order %v, want %v", b, order, want)
		}
	}
	if got := p.Block(6); len(got) != 0 {
		t.Errorf("block 6 of 0 to 5: got %v, want none", got)
	}
}

func TestPlanSeed(t *testing.T) {
	s := house(t)
	p := study.NewPlan(s, 7, 30)
	if again := study.NewPlan(s, 7, 30); !slices.Equal(p, again) {
		t.Error("the same study and seed gave two plans")
	}
	if short := study.NewPlan(s, 7, 8); !slices.Equal(short, p[:len(short)]) {
		t.Error("the plan of 30 blocks does not begin with that of 8")
	}
	if other := study.NewPlan(s, 8, 30); slices.Equal(p, other) {
		t.Error("seeds 7 and 8 gave one plan")
	}
}

// Every arm is to come in every place of its workload's order about as often.
func TestPlanBalance(t *testing.T) {
	s := house(t)
	const blocks = 2000
	count := map[string]int{}
	for b := range blocks {
		place := 0
		for _, c := range study.NewPlan(s, uint64(b), 1) {
			if c.Workload == "closed" {
				count[fmt.Sprintf("%s/%t at %d", c.Arm, c.Twin, place)]++
				place++
			}
		}
	}
	if len(count) != 25 {
		t.Fatalf("got %d pairs of arm and place, want 25", len(count))
	}
	// Binomial(2000, 1/5) has mean 400 and standard deviation 17.9.
	for what, n := range count {
		if n < 400-5*18 || n > 400+5*18 {
			t.Errorf("%s: got %d of %d, want about 400", what, n, blocks)
		}
	}
}

func TestEstimate(t *testing.T) {
	s := house(t)
	// 13 cells of 0.5 s + 3 s + 0.1 s each, five of them with a second more, a
	// loop of 0.2 s and 500 idle connections.
	want := 4 * (13*3600*time.Millisecond + 5*(1200*time.Millisecond+50*time.Millisecond+study.IdleSettle))
	if got := study.Estimate(s, 4, 100*time.Millisecond); got != want {
		t.Errorf("four blocks: got %s, want %s", got, want)
	}
}

func TestEstimateOfGenerators(t *testing.T) {
	s := &study.Study{
		Kind: study.Generators, Control: "a", Arms: []study.Arm{{Name: "a"}, {Name: "b"}}, Workloads: []study.Workload{{Name: "w"}},
		Trial: study.Trial{WarmUp: 5 * time.Second, Measure: 1500 * time.Millisecond},
	}
	if got, want := study.Estimate(s, 2, 100*time.Millisecond), 4*2100*time.Millisecond; got != want {
		t.Errorf("two blocks: got %s, want %s", got, want)
	}
}

func TestQuickForm(t *testing.T) {
	s := house(t)
	before := fmt.Sprintf("%+v", *s)
	q := s.QuickForm()
	var arms, workloads []string
	for _, a := range q.Arms {
		arms = append(arms, a.Name)
	}
	for _, w := range q.Workloads {
		workloads = append(workloads, w.Name)
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"arms", strings.Join(arms, " "), "own rival"},
		{"workloads", strings.Join(workloads, " "), "closed half"},
		{"looks", fmt.Sprint(q.LooksUpTo(0)), "[6]"},
		{"warm-up", q.Trial.WarmUpOr(), 500 * time.Millisecond},
		{"measure", q.Trial.MeasureOr(), time.Second},
		{"measure of a workload with one of its own", q.Measured(q.Workloads[0]), time.Second},
		{"slice", q.Trial.SliceOr(), 100 * time.Millisecond},
		{"claims", len(q.Claims), 2},
		{"checks of P1.first", len(q.Claims[0].Checks), 3},
		{"checks of P1.second", len(q.Claims[1].Checks), 3},
		{"the first check of P1.second, whose arms are gone", q.Claims[1].Checks[0].Kind, study.Interaction},
		{"goals that have arms left", len(q.Goals), 3},
		{"checks of the first", fmt.Sprint(checked(q.Goals[0])), "[closed cpu_per_request own/rival closed rss_peak own/rival half cpu_per_request own/rival half rss_peak own/rival]"},
		{"checks of the second", fmt.Sprint(checked(q.Goals[1])), "[half startup own/ half startup rival/]"},
		{"quick form of the quick form", reflect.DeepEqual(q.QuickForm(), q), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if after := fmt.Sprintf("%+v", *s); after != before {
		t.Errorf("the study changed\nfrom %s\nto   %s", before, after)
	}
	all := s.Claims[1].Checks
	s.Claims[1].Deciding = len(all)
	if got := s.QuickForm().Claims[1].Checks; !reflect.DeepEqual(got, all) {
		t.Errorf("checks that decide together: got %d, want all %d", len(got), len(all))
	}
}

func TestPart(t *testing.T) {
	s := house(t)
	before := fmt.Sprintf("%+v", *s)
	q, err := s.Part([]string{"rival"}, []string{"half"})
	if err != nil {
		t.Fatal(err)
	}
	if len(q.Arms) != 2 || q.Arms[0].Name != "own" || q.Arms[1].Name != "rival" || len(q.Workloads) != 1 || q.Workloads[0].Name != "half" {
		t.Errorf("got arms %v, workloads %v, want the control own, rival, and half", q.Arms, q.Workloads)
	}
	for _, g := range q.Goals {
		for _, k := range checked(g) {
			if !strings.HasPrefix(k, "half ") {
				t.Errorf("a goal keeps the check %s", k)
			}
		}
	}
	if q := q.QuickForm(); len(q.Arms) != 2 || len(q.Workloads) != 1 || fmt.Sprint(q.LooksUpTo(0)) != "[6]" {
		t.Errorf("its short form has arms %v, workloads %v", q.Arms, q.Workloads)
	}
	if whole, err := s.Part(nil, nil); err != nil || !reflect.DeepEqual(whole.QuickForm(), s.QuickForm()) {
		t.Errorf("the part that is the whole has another short form: %v", err)
	}
	if after := fmt.Sprintf("%+v", *s); after != before {
		t.Errorf("the study changed\nfrom %s\nto   %s", before, after)
	}
}

// An arm that the primary workload is not for leaves the control alone there, be it
// with its twin: neither is a comparison to decide on.
func TestPartKeepsThePrimaryComparison(t *testing.T) {
	for _, twin := range []bool{false, true} {
		s := &study.Study{
			Name: "x", Control: "a", Twin: twin, Arms: []study.Arm{{Name: "a"}, {Name: "b"}, {Name: "c"}},
			Workloads: []study.Workload{{Name: "w", Arms: []string{"a", "b"}}, {Name: "v"}},
			Primary:   study.Primary{Metric: "throughput", Workload: "w"},
		}
		if _, err := s.Part([]string{"c"}, nil); err == nil || !strings.Contains(err.Error(), `left under the primary workload "w"`) {
			t.Errorf("twin %t: got %v, want a refusal of c alone", twin, err)
		}
		if _, err := s.Part([]string{"b"}, nil); err != nil {
			t.Errorf("twin %t: b alone: %v", twin, err)
		}
	}
}

func TestWithout(t *testing.T) {
	s := house(t)
	q := s.Without(map[string]string{"rival": "version not obtainable", "daemon": "not installed"})
	if got, want := len(q.Arms), 2; got != want {
		t.Errorf("arms: got %d, want %d", got, want)
	}
	if got, want := fmt.Sprint(q.Workloads[2].Arms), "[own]"; got != want {
		t.Errorf("arms of %s: got %s, want %s", q.Workloads[2].Name, got, want)
	}
	if got, want := len(q.Claims[0].Checks), 4; got != want {
		t.Errorf("checks: got %d, want %d: what cannot be judged is a result", got, want)
	}
	if got, want := len(s.Workloads[2].Arms), 2; got != want {
		t.Errorf("the study itself has %d arms left under %s, want %d", got, s.Workloads[2].Name, want)
	}
	s.Twin = false
	if got, want := len(s.Without(map[string]string{"rival": ""}).Workloads), 2; got != want {
		t.Errorf("workloads without a twin: got %d, want %d: one has nothing left to compare", got, want)
	}
}

// A short form of more blocks than the first look decides after all of them.
func TestQuickLooksOnce(t *testing.T) {
	s := study.Study{Looks: []int{8, 12}, Quick: study.Quick{Blocks: 20}}
	if got := fmt.Sprint(s.QuickForm().LooksUpTo(0)); got != "[20]" {
		t.Errorf("got looks %s, want [20]", got)
	}
	if got := fmt.Sprint(s.QuickForm().LooksUpTo(30)); got != "[30]" {
		t.Errorf("up to 30 blocks: got looks %s, want [30]: a look at 20 may end the run with too few for claims", got)
	}
}

func TestLooksUpTo(t *testing.T) {
	for _, c := range []struct {
		looks []int
		cap   int
		want  string
	}{
		{nil, 0, "[8 12 18 30]"},
		{nil, 30, "[8 12 18 30]"},
		{nil, 12, "[8 12]"},
		{nil, 10, "[8 10]"},
		{nil, 40, "[8 12 18 30 40]"},
		{nil, 6, "[6]"},
		{[]int{6, 9}, 0, "[6 9]"},
		{[]int{6, 9}, 8, "[6 8]"},
	} {
		s := study.Study{Looks: c.looks}
		if got := fmt.Sprint(s.LooksUpTo(c.cap)); got != c.want {
			t.Errorf("looks %v up to %d: got %s, want %s", c.looks, c.cap, got, c.want)
		}
	}
}
