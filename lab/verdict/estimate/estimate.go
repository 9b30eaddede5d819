// Package estimate holds values that are known to within an interval.
package estimate

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/tarehq/tare/stats"
)

// Estimate is a value with its interval.
type Estimate struct {
	Value    float64
	Interval stats.Interval
	Level    float64 // of the interval, such as 0.98; 0 where there is none
	Anytime  bool    // the interval holds whenever one looks

	n     int     // values that it was made from
	after int     // likewise; more than n where it takes so many to bound the interval
	below float64 // from the interval's lower end to the value then; +Inf = not known
	above float64 // likewise, to the upper end
}

// MarshalJSON leaves out an end of the interval that is not bounded.
func (e Estimate) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Value float64  `json:"value"`
		Lo    *float64 `json:"lo,omitzero"`
		Hi    *float64 `json:"hi,omitzero"`
		Level float64  `json:"level,omitzero"`
		Any   bool     `json:"anytime,omitzero"`
	}{e.Value, Finite(e.Interval.Lo), Finite(e.Interval.Hi), e.Level, e.Anytime})
}

// Called names the interval for people: "98 % interval", or "95 % anytime interval".
func (e Estimate) Called() string { return e.Confidence() + " interval" }

// Confidence is the interval's level for people: "98 %", or "95 % anytime".
func (e Estimate) Confidence() string {
	text := fmt.Sprintf("%.4g %%", 100*e.Level)
	if e.Anytime {
		text += " anytime"
	}
	return text
}

// Finite is v where JSON can hold it, and nil where it cannot.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Level is the level of an interval that is missed with a probability of alpha, without the
// rounding error of the subtraction.
func Level(alpha float64) float64 { return math.Round((1-alpha)*1e6) / 1e6 }

// Centre is the centre of some values or differences, one a block, by Hodges and Lehmann, with
// its interval of level 1 − alpha: one that holds whenever one looks, if anytime.
func Centre(d []float64, alpha float64, anytime bool) Estimate {
	e := Estimate{Value: stats.HodgesLehmann(d), Level: Level(alpha), Anytime: anytime, n: len(d), after: len(d)}
	if anytime {
		e.Interval = stats.AnytimeInterval(d, alpha)
	} else {
		e.Interval = stats.SignedRankInterval(d, alpha)
	}
	e.below, e.above = e.Value-e.Interval.Lo, e.Interval.Hi-e.Value
	if !e.Interval.Bounded() {
		e.after, e.below, e.above = max(e.n, stats.BlocksForFamily(1, alpha)), math.Inf(1), math.Inf(1)
		if e.n > 1 {
			e.below = stats.HalfWidthAfter(e.after, d, alpha)
			e.above = e.below
		}
	}
	return e
}

// N is the number of values that a centre was made from.
func (e Estimate) N() int { return e.n }

// Needs is about how many more blocks would keep a centre's interval, and extra beside it, from
// reaching limit: as many as bound it, at least. It is 0 where no number would, and at most 1,000,000.
func (e Estimate) Needs(limit, extra float64) int {
	goal, h := limit-e.Value, e.above
	if goal < 0 {
		goal, h = -goal, e.below // an interval need not lie evenly around its centre
	}
	least := e.after - e.n
	h += extra
	if !(goal > 0) || math.IsInf(h, 0) {
		return least
	}
	return max(1, least, int(math.Min(math.Ceil(float64(e.after)*(h/goal)*(h/goal)), 1e6))-e.n)
}

// Mean is the mean of v with its interval by Student's t, of level 95 %. It
// keeps what adds up adding up. The interval is unbounded for fewer than two.
func Mean(v []float64) Estimate {
	e := Estimate{Level: Level(stats.StudyAlpha)}
	e.Value, e.Interval = stats.Mean(v, stats.StudyAlpha)
	return e
}

// Sampled is the mean of v, whose values have margins of their own, from the number
// of stacks. Its interval is never narrower than these allow: a few captures may
// agree by luck.
func Sampled(v, margins []float64) Estimate {
	e := Mean(v)
	var ss float64
	for _, m := range margins {
		ss += m * m
	}
	if half := math.Sqrt(ss) / float64(max(1, len(v))); half > e.Interval.Hi-e.Value {
		e.Interval = stats.Interval{Lo: e.Value - half, Hi: e.Value + half}
	}
	return e
}
