package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// clientRule asks whether the service's own requests to others use connections
// more than once.
func clientRule() Rule {
	return Rule{
		Name:      "client",
		Question:  "Does the HTTP client use its connections again?",
		Threshold: "more than one dial for 20 requests, for more than 1 % of the CPU",
		Verify:    "tare doctor again: the dials go away",
		needs:     []Part{CPUProfile, BusyService, AllocationProfile},
		check:     checkClient,
	}
}

func checkClient(e *Evidence) ([]Finding, *Missing) {
	dialling := symptom.Calls("net/http.(*Transport).dialConn", "net/http.(*Transport).queueForDial", "net/http.(*persistConn).close", "net/http.(*persistConn).readLoop", "net/http.(*persistConn).writeLoop")
	dials := e.dials()
	if dials.Count == 0 {
		return nil, nil
	}
	by, per := e.per()
	price := e.spent(dialling)
	margin := dials.Count * 1.96 / max(1, math.Sqrt(dials.Value/sampling))
	often := fmt.Sprintf("%s [%s, %s] times per %s", unit.Number(dials.Count/by), unit.Number(max(0, dials.Count-margin)/by), unit.Number((dials.Count+margin)/by), per)
	f := Finding{
		Severity: e.weighCPU(price, 0.01), Price: &price,
		Title:    "the HTTP client dials " + often,
		Evidence: []Row{note("connections opened, by the buffers that they allocate: " + often)},
	}
	switch bound := 0.05 * by; {
	case e.Window.Requests == 0:
		f.Severity = min(f.Severity, Uncertain)
		f.Evidence = append(f.Evidence, note("the requests were not counted (--load), so whether these are many is not known"))
	case dials.Count-margin >= bound:
	case dials.Count < bound:
		f.Severity = Cheap
	default:
		f.Severity = min(f.Severity, Uncertain)
	}
	if e.transportsMade(dials) {
		f.Evidence = append(f.Evidence, note("Transports are made anew, about one for each connection"))
	}
	f.Evidence = append(f.Evidence, e.places(e.CPU, symptom.Calls("net/http.(*Client).do", "net/http.(*Transport).RoundTrip"), unit.Nanoseconds)...)
	f.Evidence = append(f.Evidence, e.socketRows()...)
	f.Remedy = e.reuseRemedy(dials)
	return []Finding{f}, nil
}

// dials counts the connections that the client opened by what each allocates
// once: the buffer of its reader. Smaller objects made beside it are distinguished by
// their size, and are sampled too seldom to count by.
func (e *Evidence) dials() cost.Amount {
	var buffers []cost.Stack
	for _, s := range e.Allocs {
		at := symptom.Calls("bufio.NewReaderSize")(s.Frames)
		if at < 0 || at+1 >= len(s.Frames) || !strings.HasPrefix(s.Frames[at+1].Func, "net/http.(*Transport).dialConn") {
			continue
		}
		if s.Count > 0 && s.Value/s.Count >= 1<<10 {
			buffers = append(buffers, s)
		}
	}
	return sum(buffers, nil)
}

// transportsMade reports whether the connections are of about as many Transports,
// by what one allocates when it is first used, which is several objects.
func (e *Evidence) transportsMade(dials cost.Amount) bool {
	return sum(e.Allocs, symptom.Calls("net/http.(*Transport).onceSetNextProtoDefaults")).Count > dials.Count/2
}

// sampling is how many bytes the allocation profiler lets pass for each stack
// that it takes, unless the program says another.
const sampling = 512 << 10

// socketRows tell the process's sockets by state, and what its network namespace
// has of those that are no process's any more.
func (e *Evidence) socketRows() []Row {
	if !e.has(ProcessFacts) {
		return nil
	}
	first, last := e.Process[0], e.Process[len(e.Process)-1]
	var rows []Row
	for _, state := range slices.Sorted(maps.Keys(last.Sockets)) {
		if n := last.Sockets[state]; n > 10 && n > 2*first.Sockets[state] {
			rows = append(rows, Row{What: "sockets " + state + ", and growing", Value: float64(n), Unit: unit.Count})
		}
	}
	rows = append(rows, timeWaitRows(first.TimeWait, last.TimeWait)...)
	whose := "connections opened in its network namespace meanwhile"
	if !last.OwnNetwork {
		whose += ", by it and all others there"
	}
	return append(rows, Row{What: whose, Value: float64(last.Dials - first.Dials), Unit: unit.Count})
}

// timeWaitRows name the three peers to which most connections wait out their time.
// A process's own are not to be told from others' of its network namespace.
func timeWaitRows(first, last map[string]int) []Row {
	peers := slices.SortedFunc(maps.Keys(last), func(a, b string) int {
		return cmp.Or(cmp.Compare(last[b], last[a]), strings.Compare(a, b))
	})
	var rows []Row
	for _, peer := range peers[:min(3, len(peers))] {
		what := "connections of its network namespace in time wait, to " + peer
		if last[peer] > 2*first[peer] {
			what += ", and growing"
		}
		rows = append(rows, Row{What: what, Value: float64(last[peer]), Unit: unit.Count})
	}
	return rows
}

// reuseRemedy says what to do by what shows of the cause: Transports made anew have
// nothing to use again, connections that pile up are kept by somebody, others were
// closed.
func (e *Evidence) reuseRemedy(dials cost.Amount) string {
	const (
		drain = "read every answer's body to its end before closing it (io.Copy(io.Discard, res.Body)), or the connection is thrown away"
		spare = "set Transport.MaxIdleConnsPerHost to the number of requests at once: the default keeps 2 for each host"
		one   = "make one Transport and keep it: each has connections of its own"
	)
	if e.transportsMade(dials) {
		return one
	}
	if e.has(GoroutineCounts) {
		reading := symptom.Calls("net/http.(*persistConn).readLoop")
		first, last := sum(e.Counts[0].Goroutines, reading).Count, sum(e.Counts[len(e.Counts)-1].Goroutines, reading).Count
		if last > first+fewestGrown && last > 1.5*first {
			return "close every answer's body, on every way out of the function, and " + one
		}
	}
	return drain + "; " + spare + "; " + one
}
