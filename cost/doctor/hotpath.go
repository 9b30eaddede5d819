package doctor

import (
	"fmt"

	"github.com/tarehq/tare/cost/doctor/symptom"
	"github.com/tarehq/tare/stats/unit"
)

// hotPath is a matter that is told by functions on CPU stacks.
type hotPath struct {
	rule  Rule
	about symptom.Match
	least float64 // share of the CPU below which it does not matter
	title string
}

// hotPathRules are the rules that ask how much CPU goes into something which
// there are cheaper ways to do.
func hotPathRules() []Rule {
	paths := []hotPath{jsonPath(), formatPath(), contextPath(), headerPath(), introspectionPath()}
	rules := make([]Rule, 0, len(paths)+1)
	for _, p := range paths {
		rules = append(rules, p.whole())
	}
	return append(rules, compressionRule())
}

// whole is the rule with its check.
func (p hotPath) whole() Rule {
	r := p.rule
	r.Verify = verifyCost
	r.needs = []Part{CPUProfile, BusyService}
	r.check = func(e *Evidence) ([]Finding, *Missing) {
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
	return r
}

func jsonPath() hotPath {
	return hotPath{
		rule: Rule{
			Name:      "json",
			Question:  "Does encoding JSON by reflection take much of a request?",
			Threshold: "more than 20 % of the CPU",
			Remedy:    "encode the named types with generated or hand-written code, send fewer fields, or keep the encoded form where it does not change",
		},
		about: symptom.Itself(symptom.Calls("encoding/json", "github.com/json-iterator/go", "github.com/goccy/go-json")),
		least: 0.20, title: "JSON",
	}
}

func formatPath() hotPath {
	return hotPath{
		rule: Rule{
			Name:      "format",
			Question:  "Does fmt take much of a request?",
			Threshold: "more than 3 % of the CPU",
			Remedy:    "build the text with strconv.Append… and append where it is built for each request; leave fmt to errors",
		},
		about: symptom.Itself(symptom.Calls("fmt.")),
		least: 0.03, title: "formatting by reflection",
	}
}

func contextPath() hotPath {
	return hotPath{
		rule: Rule{
			Name:      "contexts",
			Question:  "Are context values nested deep?",
			Threshold: "more than 1 % of the CPU for looking values up, adding them, and copying the request for each",
			Remedy:    "carry one pointer to a struct of everything that belongs to the request in place of a value each; every layer of values is searched, and every WithContext copies the request",
		},
		about: symptom.Unrouted(symptom.Calls("context.value", "context.(*valueCtx)", "context.WithValue", "net/http.(*Request).WithContext")),
		least: 0.01, title: "carrying values in contexts",
	}
}

func headerPath() hotPath {
	return hotPath{
		rule: Rule{
			Name:      "headers",
			Question:  "Does reading header fields take much of a request?",
			Threshold: "more than 20 % of the CPU",
			Remedy:    "find out who sends so many fields (cookies, tracing baggage, a proxy) and drop them before this service; lower MaxHeaderBytes",
		},
		about: symptom.Calls("net/textproto.readMIMEHeader", "net/textproto.(*Reader)", "net/http.readCookies"),
		least: 0.20, title: "reading header fields",
	}
}

func introspectionPath() hotPath {
	return hotPath{
		rule: Rule{
			Name:      "introspection",
			Question:  "Do requests ask the runtime about itself?",
			Threshold: "more than 1 % of the CPU",
			Remedy:    "read runtime/metrics from one goroutine a few times a second, and share the result with requests; runtime.ReadMemStats stops the world; take tracebacks for errors only",
		},
		about: symptom.Unlogged(symptom.Calls("runtime.ReadMemStats", "runtime/metrics.Read", "runtime/debug.Stack", "runtime/debug.ReadGCStats", "runtime.Stack", "runtime.Callers", "runtime.Caller", "runtime.stopTheWorldGC", "runtime.readMemStats")),
		least: 0.01, title: "asking the runtime about itself",
	}
}
