// Package bound compares measures with bounds, such as "p99 < 50 ms".
//
// A comparison is a measure, an operator (<, <=, >, >=) and a quantity as
// [unit.Parse] reads it. Load thresholds, gate budgets, goals and claims are all
// written so. A value is compared by [Bound.Holds], an estimate by its interval, by
// [Bound.Judge]. The package knows no measures: callers say which exist and what they
// are counted in.
package bound

import (
	"fmt"
	"strings"

	"github.com/tarehq/tare/stats/unit"
)

// Outcome is what became of a comparison.
type Outcome string

// The outcomes.
const (
	Held         Outcome = "held"
	Failed       Outcome = "failed"
	Inconclusive Outcome = "inconclusive"
)

// Op is how a value is compared with a quantity.
type Op string

// The operators.
const (
	Below   Op = "<"
	AtMost  Op = "<="
	Above   Op = ">"
	AtLeast Op = ">="
)

// Pattern is what [ParseBound] takes, for JSON Schemas.
const Pattern = `^(<=?|>=?) ?` + unit.Written + `$`

// Bound is what a value must hold.
type Bound struct {
	Op    Op
	Value float64 // in Unit
	Unit  string  // a base unit of package unit
}

// Comparison is a bound of a measure.
type Comparison struct {
	Measure string
	Bound
}

// Parse reads a comparison. Spaces between its parts do not matter.
func Parse(s string) (Comparison, error) {
	at := strings.IndexAny(s, "<>")
	if at < 0 {
		return Comparison{}, fmt.Errorf("%q has no comparison; write one such as p99<50ms", s)
	}
	b, err := ParseBound(s[at:])
	return Comparison{strings.TrimSpace(s[:at]), b}, err
}

// ParseBound reads an operator and a quantity, such as "<= 5 ms".
func ParseBound(s string) (Bound, error) {
	quantity := strings.TrimLeft(s, "<>=")
	b := Bound{Op: Op(s[:len(s)-len(quantity)])}
	switch b.Op {
	case Below, AtMost, Above, AtLeast:
	default:
		return Bound{}, fmt.Errorf("%q does not begin with <, <=, > or >=", s)
	}
	var err error
	b.Value, b.Unit, err = unit.Parse(strings.TrimSpace(quantity))
	return b, err
}

// In returns the bound of a measure that is counted in a base unit. A plain number
// stands for a rate, and from 0 to 1 for a share; any other unit must be that of the
// measure.
func (b Bound) In(base string) (Bound, error) {
	plain := b.Unit == unit.Count && (base == unit.PerSecond || base == unit.Share && b.Value <= 1)
	if b.Unit != base && !plain {
		return Bound{}, fmt.Errorf("the bound is %s; it must be %s", unit.Describe(b.Unit), unit.Describe(base))
	}
	b.Unit = base
	return b, nil
}

// String writes the bound for people.
func (b Bound) String() string { return string(b.Op) + " " + unit.Format(b.Value, b.Unit) }

// Upper reports whether the bound is one from above.
func (b Bound) Upper() bool { return b.Op == Below || b.Op == AtMost }

// Holds reports whether a value holds the bound.
func (b Bound) Holds(v float64) bool {
	switch b.Op {
	case Below:
		return v < b.Value
	case AtMost:
		return v <= b.Value
	case Above:
		return v > b.Value
	}
	return v >= b.Value
}

// Judge compares an interval: the bound held if it does at every value of the
// interval, and failed if it does at none.
func (b Bound) Judge(lo, hi float64) Outcome {
	switch atLo, atHi := b.Holds(lo), b.Holds(hi); {
	case atLo && atHi:
		return Held
	case !atLo && !atHi && lo <= hi: // not of NaN
		return Failed
	}
	return Inconclusive
}
