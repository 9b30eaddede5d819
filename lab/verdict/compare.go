package verdict

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict/estimate"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Estimate is a value with its interval.
type Estimate = estimate.Estimate

// Comparison is an arm against another, mostly the control, on one metric in
// one workload.
type Comparison struct {
	Metric       study.Metric
	Workload     string
	Arm, Against string
	Scale        Scale
	Alpha        float64 // level of the intervals
	Anytime      bool    // the intervals hold whenever one looks: the run has not ended
	Sizes

	// N blocks had both; the medians are over these.
	N             int
	ArmMedian     float64
	AgainstMedian float64
	Paired        []float64 // differences on the scale, in the order of the blocks
	// Effect is on the scale. Its Verdict and Needs hold before correction.
	Effect stats.Comparison
	// Difference is the paired difference in the metric's base unit.
	Difference Estimate
	plain      []float64 // paired differences in that unit

	// Verdict is the final one: Faster and Slower mean better and worse.
	Verdict  stats.Verdict
	Needs    int     // when inconclusive: about so many more blocks would decide
	Family   int     // number of comparisons decided on together; 0 = descriptive
	step     float64 // the level at which the family's procedure told it apart; 0 if it did not
	Note     string  // why Verdict is not what the interval alone says
	Heaps    string  // that the paired differences lie in two heaps, and where; "" = in one
	Withheld string  // why there is no comparison: only the medians then hold
}

// Relative is the effect as a relative change, such as 0.021 for +2.1 %, with
// its interval. It is only there on the ratio scale.
func (c *Comparison) Relative() (e Estimate, ok bool) {
	return Relative(c.Scale, c.Effect, c.Difference)
}

// Relative is a comparison as a relative change, at the level that e has. It is only there on the
// ratio scale.
func Relative(s Scale, c stats.Comparison, e Estimate) (Estimate, bool) {
	if s != Ratio {
		return Estimate{}, false
	}
	i := c.Interval
	e.Value, e.Interval = math.Expm1(c.Effect), stats.Interval{Lo: math.Expm1(i.Lo), Hi: math.Expm1(i.Hi)}
	if math.IsInf(i.Lo, -1) {
		e.Interval.Lo = i.Lo // e^−∞ − 1 is finite, yet no bound
	}
	return e, true
}

// Told reports whether the arms were distinguished by the final verdict.
func (c *Comparison) Told() bool {
	switch c.Verdict {
	case stats.Faster, stats.Slower, stats.Small:
		return true
	}
	return false
}

// Sizes are the two that a difference is held against, on the scale. They are
// never mixed: absence of a difference counts within the threshold alone.
type Sizes struct {
	Threshold float64 // practical size, of the study
	Floor     float64 // what this machine shows of an arm against itself; 0 = not known
}

// Band is the smallest difference that counts as one.
func (s Sizes) Band() float64 { return max(s.Threshold, s.Floor) }

// compare compares two cells on m. N is 0 where no block has both.
func (an *analyser) compare(w *Workload, m *Metric, arm, against cell) Comparison {
	c := Comparison{
		Metric: m.Metric, Workload: w.Name, Arm: arm.arm, Against: against.arm,
		Scale: m.Scale, Alpha: w.Alpha, Anytime: w.Anytime, Sizes: m.Sizes,
	}
	rows := an.valid.rows(m.Name, arm, against)
	c.N = len(rows)
	if c.N == 0 {
		return c
	}
	x, y, plain := make([]float64, c.N), make([]float64, c.N), make([]float64, c.N)
	d := make([]float64, c.N)
	for i, row := range rows {
		x[i], y[i] = row[0], row[1]
		plain[i] = row[0] - row[1]
		d[i] = m.Scale.of(row[0]) - m.Scale.of(row[1])
	}
	c.ArmMedian, c.AgainstMedian = stats.Median(x), stats.Median(y)
	if c.Withheld = an.otherRates(m.Name, arm, against); c.Withheld != "" {
		return c
	}
	c.Difference, c.plain = w.estimate(plain), plain
	c.Paired = d
	c.Effect = Judge(d, an.rule(m, w))
	c.Verdict, c.Needs = c.Effect.Verdict, c.Effect.Needs
	if look := lookAt(an.looks, an.begun).Blocks; c.Anytime && c.Needs > 0 && look > an.begun {
		c.Needs = max(c.Needs, look-an.begun) // the run, gone on with, looks no sooner
	}
	if m.Unfloored && c.Verdict != stats.Inconclusive {
		c.Verdict, c.Needs, c.Note = stats.Inconclusive, leastTwinPairs-m.twinned, m.floorless()
	}
	c.Heaps = c.heaps()
	return c
}

// Judge is stats.Compare with the narrowest threshold there is where there is none,
// as the control's level of 0 leaves none: no errors and no errors are equivalent.
func Judge(d []float64, r stats.Rule) stats.Comparison {
	r.Threshold = max(r.Threshold, math.SmallestNonzeroFloat64)
	return stats.Compare(d, r)
}

func (an *analyser) rule(m *Metric, w *Workload) stats.Rule {
	return stats.Rule{Alpha: w.Alpha, Threshold: m.Threshold, Floor: m.Floor, Anytime: w.Anytime, HigherIsBetter: m.Higher,
		Cap: an.looks[len(an.looks)-1].Blocks}
}

// of puts a value on the scale.
func (s Scale) of(v float64) float64 {
	if s == Ratio {
		return math.Log(v)
	}
	return v
}

// estimate is the centre of some values or differences, one a block, with its
// interval at the workload's level.
func (w *Workload) estimate(d []float64) Estimate {
	return estimate.Centre(d, w.Alpha, w.Anytime)
}

// SameRate is how far two arms' achieved rates may be apart for their response
// times to be compared: what a trial may fall short of the offered rate.
const SameRate = 0.02

// otherRates says why response times of two cells may not be compared.
func (an *analyser) otherRates(metric string, arm, against cell) string {
	if !paced(metric) {
		return ""
	}
	rows := an.valid.rows("throughput", arm, against)
	if len(rows) == 0 {
		return ""
	}
	x, y := make([]float64, len(rows)), make([]float64, len(rows))
	for i, row := range rows {
		x[i], y[i] = row[0], row[1]
	}
	a, b := stats.Median(x), stats.Median(y)
	if math.Abs(a-b) <= SameRate*max(a, b) {
		return ""
	}
	return fmt.Sprintf("response times at different rates are not compared (%s and %s)",
		unit.Format(a, unit.PerSecond), unit.Format(b, unit.PerSecond))
}

// Where a noise floor comes from.
const (
	byTwin        = "the control's twin in this run"
	byCalibration = "calibration"
)

// leastTwinPairs is the number of pairs of control and twin from which on they make
// a floor: of fewer, the 95 % quantile is that of some ten sign patterns.
const leastTwinPairs = 6

// floorless says why there is no noise floor where the study has a twin.
func (m *Metric) floorless() string {
	return fmt.Sprintf("no noise floor is known: control and twin have %s, of the %d that make one", unit.Plural(m.twinned, "valid pair"), leastTwinPairs)
}

// setSizes sets the metric's threshold and noise floor.
func (an *analyser) setSizes(m *Metric, w *Workload) {
	control := cell{w.Name, an.study.Control, false}
	if m.twinFloor, m.twinned = an.twinFloor(m, control); m.twinned >= leastTwinPairs {
		m.Floor, m.FloorBy = m.twinFloor, byTwin
	}
	if f, ok := an.manifest.Floor[m.Name]; ok && m.Scale == Ratio {
		// Fewer blocks than it was calibrated for leave more noise. More of
		// them are given no credit: drift does not average out.
		if have := max(w.Blocks, 1); have < an.manifest.FloorN {
			f *= math.Sqrt(float64(an.manifest.FloorN) / float64(have))
		}
		if f > m.Floor {
			m.Floor, m.FloorBy = f, byCalibration
		}
	}
	m.Unfloored = an.study.Twin && an.rounds != nil && m.FloorBy == "" // captures have no twin
	m.Threshold = math.Log1p(an.study.Threshold)
	if m.Scale == Difference {
		whole := m.Name
		if m.Residual {
			whole = "cpu_per_request"
		}
		level := stats.Median(values(an.valid.points(control, whole)))
		m.Threshold = an.study.Threshold * math.Abs(level)
		if math.IsNaN(m.Threshold) || m.Threshold < m.Grain {
			m.Threshold = m.Grain
		}
	}
}

// twinFloor is the effect that the control shows against its own twin, 0 if they
// never differ, and the number of blocks that had both.
func (an *analyser) twinFloor(m *Metric, control cell) (floor float64, blocks int) {
	rows := an.valid.rows(m.Name, control, control.asTwin())
	if len(rows) == 0 {
		return 0, 0
	}
	for _, row := range rows {
		for i := range row {
			row[i] = m.Scale.of(row[i])
		}
	}
	h := fnv.New64a()
	h.Write([]byte(control.workload + "\x00" + m.Name))
	rng := rand.New(rand.NewPCG(an.manifest.Seed, h.Sum64()))
	return stats.NoiseFloor(rows, len(rows), stats.LeastSubStudies, rng), len(rows)
}
