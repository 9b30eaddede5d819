package doctor

import (
	"fmt"

	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// hotPath is what a rule takes for a matter that is told by functions on CPU stacks.
type hotPath struct {
	name, question, title, remedy string
	least                         float64 // share of the CPU below which it does not matter
	spentOn                       string  // in the threshold: what the matter is more exactly
	about                         symptom.Match
}

// hotPathRules are the rules that ask how much CPU goes into something which
// there are cheaper ways to do.
func hotPathRules() []Rule {
	paths := []hotPath{
		{"json", "Does encoding JSON by reflection take much of a request?", "JSON",
			"encode the named types with generated or hand-written code, send fewer fields, or keep the encoded form where it does not change", 0.20, "",
			symptom.Itself(symptom.Calls("encoding/json", "github.com/json-iterator/go", "github.com/goccy/go-json"))},
		{"format", "Does fmt take much of a request?", "formatting by reflection",
			"build the text with strconv.Append… and append where it is built for each request; leave fmt to errors", 0.03, "",
			symptom.Itself(symptom.Calls("fmt."))},
		{"contexts", "Are context values nested deep?", "carrying values in contexts",
			"carry one pointer to a struct of everything that belongs to the request in place of a value each; every layer of values is searched, and every WithContext copies the request",
			0.01, " for looking values up, adding them, and copying the request for each",
			symptom.Unrouted(symptom.Calls("context.value", "context.(*valueCtx)", "context.WithValue", "net/http.(*Request).WithContext"))},
		{"headers", "Does reading header fields take much of a request?", "reading header fields",
			"find out who sends so many fields (cookies, tracing baggage, a proxy) and drop them before this service; lower MaxHeaderBytes", 0.20, "",
			symptom.Calls("net/textproto.readMIMEHeader", "net/textproto.(*Reader)", "net/http.readCookies")},
		{"introspection", "Do requests ask the runtime about itself?", "asking the runtime about itself",
			"read runtime/metrics from one goroutine a few times a second, and share the result with requests; runtime.ReadMemStats stops the world; take tracebacks for errors only", 0.01, "",
			symptom.Unlogged(symptom.Calls("runtime.ReadMemStats", "runtime/metrics.Read", "runtime/debug.Stack", "runtime/debug.ReadGCStats", "runtime.Stack", "runtime.Callers", "runtime.Caller", "runtime.stopTheWorldGC", "runtime.readMemStats"))},
	}
	rules := make([]Rule, len(paths))
	for i, p := range paths {
		rules[i] = Rule{
			Name: p.name, Question: p.question, Remedy: p.remedy, Verify: verifyCost,
			Threshold: fmt.Sprintf("more than %.0f %% of the CPU%s", 100*p.least, p.spentOn),
			needs:     []Part{CPUProfile, BusyService}, check: p.check,
		}
	}
	return append(rules, compressionRule())
}

func (p hotPath) check(e *Evidence) ([]Finding, *Missing) {
	price := e.spent(p.about)
	if price.Value == 0 {
		return nil, nil
	}
	return []Finding{{
		Severity: e.weighCPU(price, p.least), Price: &price,
		Title:    fmt.Sprintf("%s takes %s of the CPU", p.title, unit.Format(price.Share, unit.Share)),
		Evidence: e.places(e.CPU, p.about, unit.Nanoseconds),
	}}, nil
}
