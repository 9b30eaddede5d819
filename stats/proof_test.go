package stats_test

// The proofs that the method works: false positives under simulated and under
// recorded null studies with the real planned looks, coverage, power, and the
// mutation that must break them.

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
)

const mostBlocks = 30 // of the planned looks

// studies is how many studies are simulated for one model.
func studies() int {
	if testing.Short() {
		return 400
	}
	return 2000
}

// allowed is the share of null studies that may find something: 5 %, and what
// counting so few studies adds at 99 % confidence (1.26 % for 2,000).
func allowed(n int) float64 {
	return stats.StudyAlpha + 2.58*math.Sqrt(stats.StudyAlpha*(1-stats.StudyAlpha)/float64(n))
}

// finds reports whether a study with the differences d finds an effect, whatever
// its size and direction, at any planned look.
func finds(d []float64, band float64) bool {
	for _, look := range stats.Looks() {
		c := stats.Compare(d[:look.Blocks], stats.Rule{Alpha: look.Alpha, Threshold: band})
		if c.Verdict != stats.Inconclusive {
			return c.Verdict != stats.Equivalent
		}
	}
	return false
}

// machine disturbs the trials that run on it, one after the other: the sum of
// what has drifted, what the process was dealt at its start, and noise.
type machine func() float64

// machines are models of how a machine disturbs, by name. Their sizes are of
// the order seen on busy virtual machines.
func machines(rng *rand.Rand) map[string]machine {
	drift, burst := 0.08*rng.NormFloat64(), 0.0
	return map[string]machine{
		"drift": func() float64 { // AR(1), standard deviation 8 %, correlated over twenty trials
			drift = 0.95*drift + 0.08*math.Sqrt(1-0.95*0.95)*rng.NormFloat64()
			return drift + 0.01*rng.NormFloat64()
		},
		"process": func() float64 { // one process in ten is dealt a bad layout
			y := 0.02*rng.NormFloat64() + 0.01*rng.NormFloat64()
			if rng.IntN(10) == 0 {
				y += 0.08
			}
			return y
		},
		"bursts": func() float64 { // neighbours wake up now and then, for about three trials
			if rng.IntN(12) == 0 {
				burst += 0.3 * rng.ExpFloat64()
			}
			if rng.IntN(3) == 0 {
				burst = 0
			}
			return burst + 0.01*rng.NormFloat64()
		},
	}
}

// randomised are the differences of a study in randomised blocks on m, of an
// arm that costs effect more than its control.
func randomised(m machine, effect float64, rng *rand.Rand) []float64 {
	d := make([]float64, mostBlocks)
	for i := range d {
		first, second := m(), m()
		if rng.IntN(2) == 0 {
			first, second = second, first
		}
		d[i] = effect + first - second
	}
	return d
}

// oneAfterTheOther are the differences of the same study as it should not be
// run: AAA…BBB.
func oneAfterTheOther(m machine) []float64 {
	d := make([]float64, mostBlocks)
	for i := range d {
		d[i] = -m()
	}
	for i := range d {
		d[i] += m()
	}
	return d
}

// eachModel runs f once a study and model, with fresh machines, and returns
// the share of studies for which it holds, by model.
func eachModel(stream uint64, f func(machine, *rand.Rand) bool) map[string]float64 {
	shares := map[string]float64{}
	for name := range machines(seeded(0)) {
		rng := seeded(stream)
		hits := 0
		for range studies() {
			if f(machines(rng)[name], rng) {
				hits++
			}
		}
		shares[name] = float64(hits) / float64(studies())
	}
	return shares
}

func TestNullStudies(t *testing.T) {
	shares := eachModel(101, func(m machine, rng *rand.Rand) bool { return finds(randomised(m, 0, rng), 0) })
	for name, share := range shares {
		t.Logf("%s: %.2f %% of %d null studies find something", name, 100*share, studies())
		if share > allowed(studies()) {
			t.Errorf("%s: false positives %.4f, want at most %.4f", name, share, allowed(studies()))
		}
	}
}

func TestPowerAndCoverage(t *testing.T) {
	effect := math.Log(1.05)
	found := eachModel(102, func(m machine, rng *rand.Rand) bool { return finds(randomised(m, effect, rng), 0.01) })
	for name, share := range found {
		t.Logf("%s: %.1f %% of studies find +5 %%", name, 100*share)
		if share < 0.9 {
			t.Errorf("%s: +5 %% found in %.3f of the studies, want 0.9 or more", name, share)
		}
	}
	for _, n := range []int{8, 30} {
		covered := eachModel(103, func(m machine, rng *rand.Rand) bool {
			return stats.SignedRankInterval(randomised(m, effect, rng)[:n], stats.StudyAlpha).Contains(effect)
		})
		for name, share := range covered {
			if share < 1-allowed(studies()) {
				t.Errorf("%s, %d blocks: interval covers the truth in %.4f, want %.4f or more", name, n, share, 1-allowed(studies()))
			}
		}
	}
}

// The mutation: without randomised blocks the same bound must break where the
// machine drifts.
func TestNullStudiesNotRandomised(t *testing.T) {
	shares := eachModel(104, func(m machine, _ *rand.Rand) bool { return finds(oneAfterTheOther(m), 0) })
	t.Logf("drift: %.1f %% of null studies run AAA…BBB find something", 100*shares["drift"])
	if share := shares["drift"]; share <= 2*allowed(studies()) {
		t.Errorf("AAA…BBB on a drifting machine: false positives %.4f; want far more than the allowed %.4f", share, allowed(studies()))
	}
}

// A gate may be looked at as often as a study: a change that does exactly the harm
// that the budget allows fails in at most half of StudyAlpha of the runs.
func TestGateLevel(t *testing.T) {
	const budget = 0.02
	shares := eachModel(106, func(m machine, rng *rand.Rand) bool {
		d := randomised(m, budget, rng)
		for _, look := range stats.Looks() {
			if r := stats.Gates([]stats.Gate{{D: d[:look.Blocks], Budget: budget, Alpha: look.Alpha}}); r[0] != bound.Inconclusive {
				return r[0] == bound.Failed
			}
		}
		return false
	})
	half := stats.StudyAlpha / 2
	most := half + 2.58*math.Sqrt(half*(1-half)/float64(studies()))
	for name, share := range shares {
		t.Logf("%s: %.2f %% of %d gates of an innocent change fail", name, 100*share, studies())
		if share > most {
			t.Errorf("%s: %.4f of the gates of an innocent change fail, want at most %.4f", name, share, most)
		}
	}
}

func readReplicates(t *testing.T) *stats.Replicates {
	t.Helper()
	f, err := os.Open("testdata/aa.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rep, err := stats.ReadReplicates(f)
	if err != nil {
		t.Fatal(err)
	}
	for name, rows := range rep.Metrics {
		if len(rows) < 2*mostBlocks || len(rows[0]) < 4 {
			t.Fatalf("metric %s: %d blocks of %d arms, want at least %d of 4", name, len(rows), len(rows[0]), 2*mostBlocks)
		}
	}
	return rep
}

// Recorded A/A trials with labels drawn anew: 30 blocks in a row, in each of
// them one identical process plays the arm and another the control.
func TestReplayedStudies(t *testing.T) {
	rep := readReplicates(t)
	for name := range rep.Metrics {
		rows := rep.Logs(name)
		rng := seeded(105)
		hits := 0
		for range studies() {
			start := rng.IntN(len(rows) - mostBlocks + 1)
			d := make([]float64, mostBlocks)
			for i := range d {
				row := rows[start+i]
				labels := rng.Perm(len(row))
				d[i] = row[labels[0]] - row[labels[1]]
			}
			if finds(d, 0) {
				hits++
			}
		}
		share := float64(hits) / float64(studies())
		t.Logf("%s: %.2f %% of %d replayed studies find something", name, 100*share, studies())
		if share > allowed(studies()) {
			t.Errorf("%s: false positives %.4f, want at most %.4f", name, share, allowed(studies()))
		}
	}
}

// The same recording, read as if 30 trials of one arm had run before 30 of the
// other, must break the bound.
func TestReplayedStudiesNotRandomised(t *testing.T) {
	rep := readReplicates(t)
	worst, worstName := 0.0, ""
	for name := range rep.Metrics {
		var trials []float64
		for _, row := range rep.Logs(name) {
			trials = append(trials, row...)
		}
		hits, count := 0, len(trials)-2*mostBlocks+1
		for start := range count {
			next := start
			if finds(oneAfterTheOther(func() float64 { next++; return trials[next-1] }), 0) {
				hits++
			}
		}
		share := float64(hits) / float64(count)
		t.Logf("%s: %.1f %% of %d studies run AAA…BBB find something", name, 100*share, count)
		if share > worst {
			worst, worstName = share, name
		}
	}
	if worst <= 2*allowed(studies()) {
		t.Errorf("AAA…BBB on recorded trials: false positives at most %.4f (%s); want far more than the allowed %.4f",
			worst, worstName, allowed(studies()))
	}
}

// A study that takes the machine's noise floor for what matters, where the threshold
// is less, sells noise as the absence of a difference: held against floor and
// threshold apart, it does not.
func TestFloorIsNoThreshold(t *testing.T) {
	const threshold, truth, sd, runs = 0.01, 0.02, 0.06, 300
	rng := seeded(107)
	equal := map[string]int{}
	for range runs {
		d, twin := make([]float64, mostBlocks), make([][]float64, mostBlocks)
		for i := range d {
			control := sd * rng.NormFloat64()
			d[i], twin[i] = truth+sd*rng.NormFloat64()-control, []float64{control, sd * rng.NormFloat64()}
		}
		for _, look := range stats.Looks() {
			floor := stats.NoiseFloor(twin[:look.Blocks], look.Blocks, stats.LeastSubStudies, rng)
			for name, rule := range map[string]stats.Rule{
				"apart": {Alpha: look.Alpha, Threshold: threshold, Floor: floor},
				"mixed": {Alpha: look.Alpha, Threshold: max(threshold, floor)},
			} {
				if stats.Compare(d[:look.Blocks], rule).Verdict == stats.Equivalent {
					equal[name]++
				}
			}
		}
	}
	t.Logf("a difference of twice the threshold is called none in %d of %d studies that mix floor and threshold, in %d that do not", equal["mixed"], runs, equal["apart"])
	if equal["apart"] > runs/20 || equal["mixed"] <= runs/20 {
		t.Errorf("a difference of twice the threshold is called none: mixed %d, apart %d of %d; want more than 5 %%, and less", equal["mixed"], equal["apart"], runs)
	}
}
