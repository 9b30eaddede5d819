package verdict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
)

// The simulation: whole studies with a twin, of arms whose truth is known, on
// machines that disturb in fourteen ways, looked at as a run is and stopped as a run
// is. No kind of verdict may be false in more than 5 % of the studies.

// disturbance is what a machine adds to the logarithms of the trials that run on it,
// one after the other.
type disturbance func() float64

// disturbances are the models, by name, each with its standard deviations about as
// seen on shared virtual machines.
var disturbances = []struct {
	name string
	make func(*rand.Rand) disturbance
}{
	{"normal 1 %", func(r *rand.Rand) disturbance { return func() float64 { return 0.01 * r.NormFloat64() } }},
	{"normal 3 %", func(r *rand.Rand) disturbance { return func() float64 { return 0.03 * r.NormFloat64() } }},
	{"normal 6 %", func(r *rand.Rand) disturbance { return func() float64 { return 0.06 * r.NormFloat64() } }},
	{"heavy tails", func(r *rand.Rand) disturbance {
		return func() float64 { return 0.01 * r.NormFloat64() / math.Sqrt(r.ExpFloat64()) } // Student's, 2 degrees
	}},
	{"skewed", func(r *rand.Rand) disturbance { return func() float64 { return 0.02 * r.ExpFloat64() } }},
	{"drift", func(r *rand.Rand) disturbance { // correlated over twenty trials
		x := 0.08 * r.NormFloat64()
		return func() float64 {
			x = 0.95*x + 0.08*math.Sqrt(1-0.95*0.95)*r.NormFloat64()
			return x + 0.01*r.NormFloat64()
		}
	}},
	{"random walk", func(r *rand.Rand) disturbance {
		x := 0.0
		return func() float64 { x += 0.01 * r.NormFloat64(); return x + 0.005*r.NormFloat64() }
	}},
	{"process", func(r *rand.Rand) disturbance { // one process in ten is dealt a bad layout
		return func() float64 { return 0.01*r.NormFloat64() + 0.08*chance(r, 10) }
	}},
	{"two modes", func(r *rand.Rand) disturbance {
		return func() float64 { return 0.005*r.NormFloat64() + 0.03*chance(r, 2) }
	}},
	{"bursts", func(r *rand.Rand) disturbance { // neighbours wake up, for about three trials
		burst := 0.0
		return func() float64 {
			burst = (burst + 0.3*r.ExpFloat64()*chance(r, 12)) * (1 - chance(r, 3))
			return burst + 0.01*r.NormFloat64()
		}
	}},
	{"step", func(r *rand.Rand) disturbance { // the machine is another from some trial on
		n, at := 0, r.IntN(60)
		return func() float64 { n++; return 0.2*float64(min(1, n/(at+1))) + 0.01*r.NormFloat64() }
	}},
	{"period", func(r *rand.Rand) disturbance { // a neighbour's timer, about every four trials
		phase := 2 * math.Pi * r.Float64()
		return func() float64 { phase += 1.6; return 0.03*math.Sin(phase) + 0.01*r.NormFloat64() }
	}},
	{"coarse clock", func(r *rand.Rand) disturbance {
		return func() float64 { return 0.01 * math.Round(1.5*r.NormFloat64()) }
	}},
	{"changing noise", func(r *rand.Rand) disturbance {
		s := 0.01
		return func() float64 { s = min(0.08, max(0.003, s*math.Exp(0.3*r.NormFloat64()))); return s * r.NormFloat64() }
	}},
}

// chance is 1 once in n times.
func chance(r *rand.Rand, n int) float64 {
	if r.IntN(n) == 0 {
		return 1
	}
	return 0
}

// The truths, in thresholds. The published figure is the largest of them, and 3 is near it.
var truths = []float64{-5, -2, -1, 0, 1, 2, 3, 5}

const (
	threshold      = 0.01
	publishedTruth = 5
)

// kinds of verdict that are counted.
var verdictKinds = []string{"direction", "figures", "equivalence", "gate"}

// outcomeCount is what came of one kind of verdict: false, right or (neither) open.
type outcomeCount struct{ n, wrong, right int }

// simulate runs one study to its end and says of each kind whether its verdict was
// false, and whether there was a right one.
func simulate(tb testing.TB, noise disturbance, truth float64, rng *rand.Rand) (wrong, right [4]bool) {
	u := base()
	u.study.Threshold = threshold
	figures := directed("more")
	figures.PublishedRatio = ptr(math.Pow(1+threshold, publishedTruth))
	u.study.Claims = []study.Claim{{ID: "direction", Checks: []study.Check{directed("more")}}, {ID: "figures", Checks: []study.Check{figures}}}
	run := &record.Run{Manifest: record.Manifest{Schema: 1, ID: "r", Study: u.study, Seed: rng.Uint64(), Outcome: "cap"}}
	var decided, gated bool
	done := 0
	for _, look := range stats.Looks() {
		for ; done < look.Blocks; done++ {
			cs := cells(u.study)
			rng.Shuffle(len(cs), func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
			for _, c := range cs {
				y := noise()
				if c.Arm == "three" {
					y += truth * math.Log1p(threshold)
				}
				run.Trials = append(run.Trials, record.Trial{
					Seq: len(run.Trials), Block: done, Arm: c.Arm, Twin: c.Twin, Workload: "half", Requests: 20_000, Elapsed: 2 * time.Second,
					Steady: true, Metrics: map[string]float64{"cpu_per_request": 30_000 * math.Exp(y)},
				})
			}
		}
		a, err := verdict.Analyse(run)
		if err != nil {
			tb.Fatal(err)
		}
		if !gated {
			switch a.Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: threshold}})[0].Result {
			case bound.Failed:
				gated, wrong[3], right[3] = true, truth <= 1, truth > 1
			case bound.Held:
				gated, wrong[3], right[3] = true, truth > 1, truth <= 1
			}
		}
		if !decided && (a.Decided() || look.Blocks == stats.Looks()[3].Blocks) {
			decided = true
			wrong[0], right[0] = judgeDirection(a.Claims[0].Verdict, truth)
			wrong[1], right[1] = judgeFigures(&a.Claims[1], truth)
			wrong[2], right[2] = judgeComparison(a.Decisions()[0].Verdict, truth)
		}
		if decided && gated {
			break
		}
	}
	return wrong, right
}

func judgeDirection(v verdict.Word, truth float64) (wrong, right bool) {
	switch v {
	case verdict.Confirmed:
		return truth <= 0, truth > 0
	case verdict.Contradicted:
		return truth >= 1, truth < 1
	}
	return false, false
}

// A figure is confirmed rightly where the truth is within half of it, and contradicted
// rightly where it is not.
func judgeFigures(c *verdict.Claim, truth float64) (wrong, right bool) {
	near := math.Abs(truth-publishedTruth) <= publishedTruth/2.0
	switch size := c.Checks[0].Ratio.Verdict; {
	case c.Verdict == verdict.Contradicted:
		return truth >= 1 || near, truth < 1
	case c.Verdict == verdict.Confirmed:
		return !near, near
	case c.Verdict == verdict.SizeExcluded:
		return near, !near
	case c.Verdict == verdict.DirectionOnly:
		return truth <= 0 || size == verdict.Contradicted && near, truth > 0 && size == verdict.Contradicted && !near
	}
	return false, false
}

func judgeComparison(v stats.Verdict, truth float64) (wrong, right bool) {
	switch v {
	case stats.Slower:
		return truth <= 0, truth > 0
	case stats.Faster:
		return truth >= 0, truth < 0
	case stats.Small:
		return truth == 0 || math.Abs(truth) > 1, math.Abs(truth) == 1
	case stats.Equivalent:
		return math.Abs(truth) >= 1, truth == 0
	}
	return false, false
}

// simulated is how many studies are run for each model and truth. TARE_SIMULATE
// asks for more, such as 1000.
func simulated(t *testing.T) int {
	if text := os.Getenv("TARE_SIMULATE"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("TARE_SIMULATE=%q is not a number of studies", text)
		}
		return n
	}
	if raceEnabled { // it takes ten times as long then, and .ci/run runs it without, too
		return 4
	}
	return 40
}

// mostWrong is 5 % and what counting n studies adds with 99.9 % confidence.
func mostWrong(n int) float64 { return 0.05 + 3.1*math.Sqrt(0.05*0.95/float64(n)) }

func TestSimulatedVerdicts(t *testing.T) {
	n := simulated(t)
	table := make([][][]outcomeCount, len(disturbances)) // by model, truth, kind
	t.Run("models", func(t *testing.T) {
		for i, d := range disturbances {
			table[i] = make([][]outcomeCount, len(truths))
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				for j, truth := range truths {
					table[i][j] = make([]outcomeCount, len(verdictKinds))
					rng := rand.New(rand.NewPCG(uint64(i), uint64(j)))
					for range n {
						wrong, right := simulate(t, d.make(rng), truth, rng)
						for k := range verdictKinds {
							table[i][j][k].add(wrong[k], right[k])
						}
					}
				}
			})
		}
	})
	for k, kind := range verdictKinds {
		t.Logf("%s: share of right verdicts (false ones) in %d studies a cell, by truth in thresholds\n%s", kind, n, printPower(table, k))
		for i, d := range disturbances {
			var all outcomeCount
			for j, truth := range truths {
				all = all.plus(table[i][j][k])
				table[i][j][k].hold(t, fmt.Sprintf("%s on %s at %+g thresholds", kind, d.name, truth))
			}
			all.hold(t, kind+" on "+d.name)
		}
		for j, truth := range truths {
			var all outcomeCount
			for i := range disturbances {
				all = all.plus(table[i][j][k])
			}
			all.hold(t, fmt.Sprintf("%s at %+g thresholds", kind, truth))
		}
	}
}

func (c *outcomeCount) add(wrong, right bool) {
	c.n++
	if wrong {
		c.wrong++
	}
	if right {
		c.right++
	}
}

func (c outcomeCount) plus(d outcomeCount) outcomeCount {
	return outcomeCount{c.n + d.n, c.wrong + d.wrong, c.right + d.right}
}

func (c outcomeCount) hold(t *testing.T, what string) {
	t.Helper()
	if share := float64(c.wrong) / float64(c.n); share > mostWrong(c.n) {
		t.Errorf("%s: %d of %d verdicts are false (%.1f %%), want at most %.1f %%", what, c.wrong, c.n, 100*share, 100*mostWrong(c.n))
	}
}

func printPower(table [][][]outcomeCount, kind int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-15s", "")
	for _, truth := range truths {
		fmt.Fprintf(&b, "%13s", fmt.Sprintf("%+g", truth))
	}
	for i, d := range disturbances {
		fmt.Fprintf(&b, "\n%-15s", d.name)
		for j := range truths {
			c := table[i][j][kind]
			fmt.Fprintf(&b, "%13s", fmt.Sprintf("%.0f %% (%.1f)", 100*float64(c.right)/float64(c.n), 100*float64(c.wrong)/float64(c.n)))
		}
	}
	return b.String()
}

// TestSimulationsDiffer holds that the models are fourteen, and none another's double.
func TestSimulationsDiffer(t *testing.T) {
	var seen []float64
	for _, d := range disturbances {
		noise, sum := d.make(rand.New(rand.NewPCG(1, 1))), 0.0
		for range 90 {
			sum += noise()
		}
		if slices.Contains(seen, sum) {
			t.Errorf("%s disturbs as another model does", d.name)
		}
		seen = append(seen, sum)
	}
	if len(seen) != 14 {
		t.Errorf("%d models, want 14", len(seen))
	}
}
