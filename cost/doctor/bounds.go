package doctor

import (
	"fmt"
	"math"
	"slices"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// boundRules ask after what others may use up because nothing bounds it: time, by a
// service that does not answer; memory, by clients.
func boundRules() []Rule {
	return []Rule{{
		Name:      "deadline",
		Question:  "Do requests to other services have a time limit?",
		Threshold: "none has one: no context with a deadline, no timer for the answer",
		Remedy:    "set http.Client's Timeout, or give each request a context with a deadline: http.DefaultClient waits for ever, and with it whoever waits for this service",
		Verify:    "tare doctor again: contexts with deadlines are made",
		needs:     []Part{AllocationProfile},
		check:     checkDeadline,
	}, {
		Name:      "bodies",
		Question:  "Are requests' bodies read into memory without a bound?",
		Threshold: "a body is read whole, and no reader on the way is one of a limit",
		Remedy:    "read http.MaxBytesReader(w, r.Body, n) in place of r.Body, or put http.MaxBytesHandler around the handlers: a client can otherwise fill the memory by one request",
		Verify:    "send a body beyond the bound: the answer is 413",
		needs:     []Part{CPUProfile, Bodies},
		check:     checkBodies,
	}, {
		Name:      "labels",
		Question:  "Do requests make new series of metrics all the time?",
		Threshold: "series of metrics take more than 1 MiB more memory at the end than at the beginning",
		Remedy:    "label by what has few values: the route's pattern in place of the path, a status, a known method; never an identifier, an address or a text of the client",
		Verify:    "tare doctor again: the memory of series stays; and count the lines of the metrics' page",
		needs:     []Part{LiveHeap},
		traffic:   true,
		check:     checkLabels,
	}}
}

// fewestSent is how many stacks of sending must have been sampled. A context with a
// deadline allocates at least as much, so that of as many none is missed but by chance.
const fewestSent = 3

func checkDeadline(e *Evidence) ([]Finding, *Missing) {
	sent := sum(e.Allocs, symptom.Sent)
	if sent.Value == 0 || sum(e.Allocs, symptom.Hurrying).Value > 0 {
		return nil, nil
	}
	if n := sent.Value / sampling; n < fewestSent {
		return nil, &Missing{AllocationProfile, fmt.Sprintf("%.1f stacks of sending were sampled, and at least %d show whether there are deadlines: use a longer --for", n, fewestSent)}
	}
	rows := e.places(e.Allocs, symptom.Sent, unit.Bytes)
	for i := range rows {
		rows[i].What = "contexts without a deadline, of requests sent by " + rows[i].What
	}
	return []Finding{{Severity: Warning, Evidence: rows, Title: "requests to other services have no time limit"}}, nil
}

func checkBodies(e *Evidence) ([]Finding, *Missing) {
	rows := e.places(e.anywhere(), symptom.Swallowing, unit.Nanoseconds)
	if len(rows) == 0 {
		return nil, nil
	}
	for i := range rows {
		rows[i] = Row{What: rows[i].What + " reads bodies whole", Where: rows[i].Where, Package: rows[i].Package, Unit: Words}
	}
	rows = append(rows, note("a proxy before the service may bound bodies, which does not show here"))
	return []Finding{{Severity: Warning, Evidence: rows, Title: "bodies of requests are read into memory without a bound"}}, nil
}

// anywhere is all stacks that ran or waited.
func (e *Evidence) anywhere() []cost.Stack {
	all := slices.Clone(e.CPU)
	for i := range e.Waits {
		all = append(all, e.Waits[i].Stack)
	}
	return all
}

const muchGrown = 1 << 20 // bytes

func checkLabels(e *Evidence) ([]Finding, *Missing) {
	before, after := sum(e.Live[0], symptom.Series).Value, sum(e.live(), symptom.Series).Value
	grown, margin := after-before, 1.96*math.Sqrt((before+after)*sampling) // both are sampled
	if !(grown > max(margin, muchGrown)) {
		return nil, nil
	}
	price := Price{Value: grown, Low: grown - margin, High: grown + margin, Unit: unit.Bytes, Of: "memory more", Share: grown / sum(e.live(), nil).Value}
	f := Finding{Severity: Warning, Price: &price, Title: fmt.Sprintf("requests made %s of new series of metrics", unit.Format(grown, unit.Bytes))}
	if price.Low <= muchGrown {
		f.Severity = Uncertain
	}
	by, _ := e.per()
	f.Evidence = e.places(e.live(), symptom.Series, unit.Bytes)
	for i := range f.Evidence {
		f.Evidence[i].What = "memory of series, made by " + f.Evidence[i].What
		f.Evidence[i].Value *= by // places divides by the profile's window
	}
	return []Finding{f}, nil
}
