package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tarehq/tare/stats"
)

// evidence is the process after the differences d.
func evidence(d []float64) *stats.EProcess {
	var e stats.EProcess
	for _, v := range d {
		e.Add(v)
	}
	return &e
}

// Over all sign patterns the mean evidence is exactly 1: nobody wins in a fair
// game, whatever the sizes.
func TestEProcessIsFair(t *testing.T) {
	rng := seeded(21)
	for n := range 12 {
		d := coarse(rng, n)
		var total float64
		flips(d, func(f []float64) { total += evidence(f).Value() })
		if mean := math.Ldexp(total, -n); math.Abs(mean-1) > 1e-9 {
			t.Errorf("mean evidence over the signs of %v = %v, want 1", d, mean)
		}
	}
}

// The first bet is known: s = |d|/0.6745, so λ|d|/s = 0.6745·λ.
func TestEProcessFirstBets(t *testing.T) {
	want := 1.0 // one block: what one side wins the other loses
	if got := evidence([]float64{5}).Value(); math.Abs(got-want) > 1e-12 {
		t.Errorf("after one block: %v, want %v", got, want)
	}
	want = 0
	for _, lambda := range []float64{0.25, 0.5, 1, 2} {
		b := math.Tanh(0.6745 * lambda)
		want += (1+b)*(1+b)/8 + (1-b)*(1-b)/8
	}
	if got := evidence([]float64{5, 5}).Value(); math.Abs(got-want) > 1e-12 {
		t.Errorf("after two equal blocks: %v, want %v", got, want)
	}
	want = 0 // the third bet is 0.95 for all, though tanh is nearly 1
	for _, lambda := range []float64{0.25, 0.5, 1, 2} {
		b := math.Tanh(0.6745 * lambda)
		want += (1+b)*(1+b)*1.95/8 + (1-b)*(1-b)*0.05/8
	}
	if got := evidence([]float64{5, 5, 150}).Value(); math.Abs(got-want) > 1e-12 {
		t.Errorf("after a wild third block: %v, want %v", got, want)
	}
	// Among zeros any difference is beyond all others; zeros are not bet on.
	if got, want := evidence([]float64{0, 0, 0, 7, 7}).Value(), (1.95*1.95+0.05*0.05)/2; math.Abs(got-want) > 1e-12 {
		t.Errorf("after zeros: %v, want %v", got, want)
	}
}

func TestEProcessMayBeStoppedAnyTime(t *testing.T) {
	null := eachModel(106, func(m machine, rng *rand.Rand) bool {
		return evidence(randomised(m, 0, rng)).Rejects(stats.StudyAlpha)
	})
	found := eachModel(107, func(m machine, rng *rand.Rand) bool {
		return evidence(randomised(m, math.Log(1.1), rng)).Rejects(stats.StudyAlpha)
	})
	for name := range null {
		t.Logf("%s: rejects %.2f %% of null studies, finds +10 %% in %.1f %%", name, 100*null[name], 100*found[name])
		if null[name] > allowed(studies()) {
			t.Errorf("%s: false positives %.4f, want at most %.4f", name, null[name], allowed(studies()))
		}
		if found[name] < 0.9 {
			t.Errorf("%s: +10 %% found in %.3f of the studies, want 0.9 or more", name, found[name])
		}
	}
}

// What was reached once stays reached.
func TestEProcessRemembersItsPeak(t *testing.T) {
	var e stats.EProcess
	for !e.Rejects(0.05) {
		if e.Add(1); e.N() > 50 {
			t.Fatal("50 equal blocks do not reject")
		}
	}
	for range 3 {
		e.Add(-1)
	}
	if e.Value() >= 20 || !e.Rejects(0.05) {
		t.Errorf("after contrary blocks: value %v, rejects %v; want a smaller value that still rejects", e.Value(), e.Rejects(0.05))
	}
}

func ExampleEProcess() {
	var e stats.EProcess
	for _, d := range []float64{0.05, 0.04, 0.06, 0.05, 0.03, 0.05, 0.06, 0.04, 0.05} {
		e.Add(d)
		if e.Rejects(0.05) {
			fmt.Println("stopped after", e.N(), "blocks")
			break
		}
	}
	// Output: stopped after 8 blocks
}

// A study that is looked at after every block, and stopped once an anytime interval
// excludes the truth, is wrong no more often than one that looks once.
func TestAnytimeIntervalHoldsAtEveryLook(t *testing.T) {
	const n, alpha, truth = 20, 0.05, 0.02
	planned, anytime, runs := 0, 0, 120
	rng := seeded(31)
	for range runs {
		d := make([]float64, n)
		var once, ever bool
		for i := range d {
			d[i] = truth + 0.03*rng.NormFloat64()
			once = once || !stats.SignedRankInterval(d[:i+1], alpha).Contains(truth)
			ever = ever || i >= 7 && !stats.AnytimeInterval(d[:i+1], alpha).Contains(truth)
		}
		planned += count(once)
		anytime += count(ever)
	}
	t.Logf("looking after every block: %d of %d intervals for one look miss the truth, %d anytime ones", planned, runs, anytime)
	if most := int(float64(runs) * (alpha + 2.58*math.Sqrt(alpha*(1-alpha)/float64(runs)))); anytime > most || planned <= most {
		t.Errorf("of %d studies looked at after every block %d anytime intervals miss the truth, and %d for one look; want at most %d, and more", runs, anytime, planned, most)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestAnytimeIntervalBounds(t *testing.T) {
	if i := stats.AnytimeInterval(around(0, 1, 6), 0.05); i.Bounded() {
		t.Errorf("6 blocks: %v, want unbounded", i)
	}
	d := around(0.05, 0.01, 30)
	seeded(32).Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
	i := stats.AnytimeInterval(d, 0.05)
	if !i.Bounded() || !i.Contains(0.05) || i.Width() > 0.03 {
		t.Errorf("30 blocks of 0.04 to 0.06: %v", i)
	}
	if one := stats.SignedRankInterval(d, 0.05); one.Width() >= i.Width() {
		t.Errorf("an interval for one look, %v, is no narrower than one for any, %v", one, i)
	}
	if i := stats.AnytimeInterval(make([]float64, 12), 0.05); i != (stats.Interval{}) {
		t.Errorf("12 times 0: %v, want 0 alone", i)
	}
}
