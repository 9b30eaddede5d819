// Package doctor diagnoses a Go HTTP service: problems, their cost and remedies.
//
// A rule asks one question of the evidence. A finding has a price, measured on this
// service and with its interval, the threshold that the price crossed, a remedy, and a way
// to verify the remedy. A finding counts only if the lower end of its price is beyond the
// threshold and a hundredth of what requests cost. If only the price itself is, it is
// reported as not certain; if it costs less, as cheap.
//
// Promised: a rule without evidence says so and never counts as healthy. Not promised: that
// a remedy saves exactly the price. Removing a part changes how the others run.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/stats/unit"
)

// Severity is how much a finding matters.
type Severity int

// Severities.
const (
	Cheap     Severity = iota // it is there and costs next to nothing
	Uncertain                 // its price is beyond the rule's threshold, its interval is not
	Warning                   // its price is beyond the rule's threshold
	Serious                   // a quarter of what requests cost, or the service at risk
)

func (s Severity) String() string { return [...]string{"cheap", "uncertain", "warning", "serious"}[s] }

// MarshalText gives the severity by name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText gave.
func (s *Severity) UnmarshalText(text []byte) error {
	for v := Cheap; v <= Serious; v++ {
		if v.String() == string(text) {
			*s = v
			return nil
		}
	}
	return fmt.Errorf("severity %q is not known", text)
}

// Finding is what a rule found.
type Finding struct {
	Rule      string   `json:"rule"`
	Severity  Severity `json:"severity"`
	Title     string   `json:"title"`
	Price     *Price   `json:"price,omitempty"` // nil: the matter is no cost but a risk
	Evidence  []Row    `json:"evidence"`
	Threshold string   `json:"threshold"`
	Remedy    string   `json:"remedy"`
	Verify    string   `json:"verify"`
}

// Rule asks one question. Rules are safe for concurrent use.
type Rule struct {
	Name      string
	Question  string
	Threshold string
	Remedy    string
	Verify    string

	needs   []Part
	traffic bool // nothing found means health only if there were requests
	check   func(*Evidence) ([]Finding, *Missing)
}

// Missing is the error of a rule that cannot tell for want of evidence.
type Missing struct {
	Part   Part
	Reason string // why it was not gathered; "" if nobody said
}

func (m *Missing) Error() string {
	if m.Reason == "" {
		return fmt.Sprintf("needs %s", m.Part)
	}
	return fmt.Sprintf("needs %s: %s", m.Part, m.Reason)
}

// Check asks the rule's question. The error is a *Missing.
func (r Rule) Check(e *Evidence) ([]Finding, error) {
	found, missing := r.ask(e)
	if missing != nil {
		return nil, missing
	}
	return found, nil
}

func (r Rule) ask(e *Evidence) ([]Finding, *Missing) {
	for _, p := range r.needs {
		if !e.has(p) {
			return nil, &Missing{p, e.reason(p)}
		}
	}
	found, missing := r.check(e)
	if missing == nil && len(found) == 0 && r.traffic && !e.has(Traffic) {
		return nil, &Missing{Traffic, e.reason(Traffic)}
	}
	for i := range found {
		f := &found[i]
		f.Rule = r.Name
		f.Threshold = cmp.Or(f.Threshold, r.Threshold)
		f.Remedy = cmp.Or(f.Remedy, r.Remedy)
		f.Verify = cmp.Or(f.Verify, r.Verify)
	}
	return found, missing
}

// reason says why a part is missing.
func (e *Evidence) reason(p Part) string {
	if p == BusyService && e.Reasons[p] == "" {
		return fmt.Sprintf("%.0f stacks were sampled, and shares need at least %d: use a longer --for, or send it more requests", e.cpu().Count, fewest)
	}
	if p == Traffic && e.Reasons[p] == "" {
		return "none were seen: use --load URL, or run it while clients send requests"
	}
	if p == Bodies && e.Reasons[p] == "" {
		return "none were seen: use --load URL with -b TEXT, or run it while clients send some"
	}
	return e.Reasons[p]
}

// Diagnosis is what all rules came to.
type Diagnosis struct {
	Subject   string    `json:"subject"`
	Seconds   float64   `json:"seconds"`
	Requests  float64   `json:"requests"`  // 0: not counted
	Findings  []Finding `json:"findings"`  // by price, the highest first
	Uncertain []Finding `json:"uncertain"` // seen, and perhaps beyond the threshold
	Cheap     []Finding `json:"cheap"`     // seen, and not worth a remedy
	Healthy   []string  `json:"healthy"`   // rules that found nothing
	Blind     []Blind   `json:"not_looked_at"`
	Warnings  []string  `json:"warnings,omitempty"`
}

// Inconclusive reports whether nothing was found for want of anything to look
// at: no rule could tell, or some would have needed requests and met none, or too
// few.
func (d *Diagnosis) Inconclusive() bool {
	if len(d.Findings) > 0 {
		return false
	}
	idle := slices.ContainsFunc(d.Blind, func(b Blind) bool { return b.Needs == Traffic || b.Needs == BusyService })
	return idle || len(d.Healthy)+len(d.Cheap)+len(d.Uncertain) == 0
}

// Blind is a rule that could not tell.
type Blind struct {
	Rule   string `json:"rule"`
	Needs  Part   `json:"needs"`
	Reason string `json:"reason,omitempty"` // why that was not to be had
}

// Examine asks every rule.
func Examine(e *Evidence) *Diagnosis {
	d := &Diagnosis{Subject: e.Subject, Seconds: e.Window.Duration.Seconds(), Requests: e.Window.Requests, Warnings: e.Warnings,
		Findings: []Finding{}, Uncertain: []Finding{}, Cheap: []Finding{}, Healthy: []string{}, Blind: []Blind{}}
	for _, r := range Rules() {
		found, missing := r.ask(e)
		switch {
		case missing != nil:
			d.Blind = append(d.Blind, Blind{r.Name, missing.Part, missing.Reason})
		case len(found) == 0:
			d.Healthy = append(d.Healthy, r.Name)
		}
		for _, f := range found {
			switch f.Severity {
			case Cheap:
				d.Cheap = append(d.Cheap, f)
			case Uncertain:
				d.Uncertain = append(d.Uncertain, f)
			default:
				d.Findings = append(d.Findings, f)
			}
		}
	}
	byPrice := func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.nanoseconds(), a.nanoseconds()), cmp.Compare(b.Severity, a.Severity), strings.Compare(a.Rule, b.Rule))
	}
	slices.SortStableFunc(d.Findings, byPrice)
	slices.SortStableFunc(d.Uncertain, byPrice)
	slices.SortStableFunc(d.Cheap, byPrice)
	return d
}

// dearestFirst sorts by price what one rule found.
func dearestFirst(found []Finding) []Finding {
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Price.Value, a.Price.Value), strings.Compare(a.Title, b.Title))
	})
	return found
}

// nanoseconds is the price by which findings are put in order; what is not paid
// in time comes after what is.
func (f *Finding) nanoseconds() float64 {
	if f.Price == nil || f.Price.Unit != unit.Nanoseconds {
		return 0
	}
	return f.Price.Value
}
