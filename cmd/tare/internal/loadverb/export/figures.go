package export

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
	"github.com/tarehq/tare/load"
)

// newFigures are the figures of a state.
func newFigures(s load.Snapshot, since time.Time) *telemetry.Figures {
	c := s.Counts
	labelled := func(name, value string, n uint64) telemetry.Point {
		return telemetry.Point{Labels: []telemetry.Label{{Name: name, Value: value}}, Value: float64(n)}
	}
	var classes, causes []telemetry.Point
	for class := 1; class < len(c.Status); class++ {
		classes = append(classes, labelled("class", fmt.Sprintf("%dxx", class), c.Status[class]))
	}
	for _, f := range []struct {
		cause string
		n     uint64
	}{{"refused", c.Refused}, {"reset", c.Reset}, {"timeout", c.Timeout}, {"short", c.Short}, {"malformed", c.Malformed}, {"dropped", c.Dropped}} {
		causes = append(causes, labelled("cause", f.cause, f.n))
	}
	one := func(v float64) []telemetry.Point { return []telemetry.Point{{Value: v}} }
	return &telemetry.Figures{At: time.Now(), Since: since, Families: []telemetry.Family{
		{Name: "load.requests", Help: "Requests scheduled.", Kind: telemetry.Counter, Unit: "{request}", Points: one(float64(c.Scheduled))},
		{Name: "load.responses", Help: "Whole responses by status class.", Kind: telemetry.Counter, Unit: "{response}", Points: classes},
		{Name: "load.failures", Help: "Requests without a whole response, by cause.", Kind: telemetry.Counter, Unit: "{request}", Points: causes},
		{Name: "load.unverified", Help: "Responses that failed verification.", Kind: telemetry.Counter, Unit: "{response}", Points: one(float64(c.Unverified))},
		{Name: "load.in_flight", Help: "Requests in flight or waiting for a connection.", Kind: telemetry.Gauge, Unit: "{request}", Points: one(float64(s.Flight))},
		{Name: "load.elapsed", Help: "Time since the measured part began; negative during the warm-up.", Kind: telemetry.Gauge, Unit: "s", Points: one(s.Elapsed.Seconds())},
		{Name: "load.response", Help: "Response times since the measured part began.", Kind: telemetry.Summary, Unit: "s", Points: []telemetry.Point{{Times: newTimes(s)}}},
	}}
}

// newTimes is the distribution of the response times of a state.
func newTimes(s load.Snapshot) *telemetry.Times {
	h := s.Response
	t := &telemetry.Times{Count: h.Count()}
	if t.Count == 0 {
		return t // the mean of nothing is not a number
	}
	t.Sum = h.Mean() * float64(t.Count) / 1e9
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		t.Quantiles = append(t.Quantiles, telemetry.Quantile{Quantile: q, Value: float64(h.Quantile(q)) / 1e9})
	}
	return t
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
