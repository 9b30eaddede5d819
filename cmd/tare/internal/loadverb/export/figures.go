package export

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/load"
)

// figures are those of a state. They share nothing with it.
type figures struct {
	at, since time.Time // when they were so, and since when they count
	families  []family
}

// kind is what a figure is.
type kind string

// The kinds, by Prometheus's names.
const (
	counter kind = "counter"
	gauge   kind = "gauge"
	summary kind = "summary"
)

// family is a figure by its labels.
type family struct {
	name, help string
	kind       kind
	unit       string // in UCUM's code
	label      string // that tells the points apart; "" is one point
	points     []point
	times      distribution // of a summary
}

// point is a value of a figure.
type point struct {
	label string // its value
	value float64
}

// distribution are times in seconds.
type distribution struct {
	count     uint64
	sum       float64
	quantiles []quantile // none where nothing was counted
}

type quantile struct {
	Quantile float64 `json:"quantile"`
	Value    float64 `json:"value"`
}

// newFigures are the figures of a state.
func newFigures(s load.Snapshot, since time.Time) *figures {
	c := s.Counts
	var classes, causes []point
	for class := 1; class < len(c.Status); class++ {
		classes = append(classes, point{fmt.Sprintf("%dxx", class), float64(c.Status[class])})
	}
	for _, f := range []struct {
		cause string
		n     uint64
	}{{"refused", c.Refused}, {"reset", c.Reset}, {"timeout", c.Timeout}, {"short", c.Short}, {"malformed", c.Malformed}, {"dropped", c.Dropped}} {
		causes = append(causes, point{f.cause, float64(f.n)})
	}
	one := func(v float64) []point { return []point{{"", v}} }
	return &figures{at: time.Now(), since: since, families: []family{
		{name: "requests", help: "Requests scheduled.", kind: counter, unit: "{request}", points: one(float64(c.Scheduled))},
		{name: "responses", help: "Whole responses by status class.", kind: counter, unit: "{response}", label: "class", points: classes},
		{name: "failures", help: "Requests without a whole response, by cause.", kind: counter, unit: "{request}", label: "cause", points: causes},
		{name: "unverified", help: "Responses that failed verification.", kind: counter, unit: "{response}", points: one(float64(c.Unverified))},
		{name: "in_flight", help: "Requests in flight or waiting for a connection.", kind: gauge, unit: "{request}", points: one(float64(s.Flight))},
		{name: "elapsed", help: "Time since the measured part began; negative during the warm-up.", kind: gauge, unit: "s", points: one(s.Elapsed.Seconds())},
		{name: "response", help: "Response times since the measured part began.", kind: summary, unit: "s", times: newDistribution(s)},
	}}
}

// newDistribution is that of the response times of a state.
func newDistribution(s load.Snapshot) distribution {
	h := s.Response
	d := distribution{count: h.Count()}
	if d.count == 0 {
		return d // the mean of nothing is not a number
	}
	d.sum = h.Mean() * float64(d.count) / 1e9
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		d.quantiles = append(d.quantiles, quantile{q, float64(h.Quantile(q)) / 1e9})
	}
	return d
}

// beginning is since when counters count. They begin again when the warm-up ends, and with
// each probe of a search.
type beginning struct {
	at   time.Time     // zero: there was no state yet
	last time.Duration // elapsed
}

// of is that of the counters of s, which follows the state of the last call.
func (b *beginning) of(s load.Snapshot) time.Time {
	if b.at.IsZero() || s.Elapsed < b.last || b.last < 0 && s.Elapsed >= 0 {
		b.at = time.Now().Add(-max(0, s.Elapsed))
	}
	b.last = s.Elapsed
	return b.at
}
