package adviseverb

import (
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/study"
)

// layers is the study of what middlewares cost. Its arms are named for what they do and
// whose they are, such as cors-rs; -serve and -net are ours, on serve and on net/http.
const layers = "weights"

// layerPart begins the part of an advice on a middleware; its kind follows.
const layerPart = "middleware: "

// kinds are the middlewares that there is a choice of, with the need that asks for them;
// "" is any service's.
var kinds = [...]struct{ kind, does, need, why string }{
	{"recovery", "recovery", "", "a panic must not end the process"},
	{"limit", "limits of bodies and of requests in flight", "", "a service must bound what it takes on"},
	{"timeout", "time-out", "", "a request must end"},
	{"accesslog", "access log", "", "what was served must be known"},
	{"metrics", "metrics", "", "load and errors must be seen"},
	{"secure", "security fields", browsers, "browsers must know what to refuse"},
	{"cors", "CORS", browsers, "pages of other origins must know what they may do"},
	{"jwt", "JWT", accounts, "callers must be known"},
	{"ratelimit", "rate limit", public, "one caller must not take all"},
	{"ipfilter", "address filter", public, "addresses must be denied early"},
}

// middlewares picks one of each kind that is needed.
func (a *adviser) middlewares(engine string) []Advice {
	s := a.evidence.studies[layers]
	if s == nil {
		return []Advice{{Part: "middlewares", Choice: "none", Reasons: []Reason{}, Open: []string{"middlewares" + a.evidence.remedy(layers)}}}
	}
	m := a.evidence.answer(question{study: layers, metric: s.Primary.Metric})
	var all []Advice
	for _, k := range kinds {
		if k.need != "" && !a.needs.set[k.need] {
			continue
		}
		adv := Advice{Part: layerPart + k.does, Reasons: []Reason{{Says: k.why}}}
		a.lightest(&adv, implementations(s, k.kind, engine), m)
		all = append(all, adv)
	}
	return all
}

// implementations are the arms of a kind that go with an engine, ours first.
func implementations(s *study.Study, kind, engine string) []study.Arm {
	ours, theirs := "-net", "-serve"
	if engine == onServe {
		ours, theirs = theirs, ours
	}
	var all []study.Arm
	for _, arm := range s.Arms {
		whose, ok := strings.CutPrefix(arm.Name, kind)
		switch {
		case !ok || strings.Count(whose, "-") != 1 || whose == theirs:
		case whose == ours:
			all = slices.Insert(all, 0, arm)
		default:
			all = append(all, arm)
		}
	}
	return all
}

// lightest picks the arm that costs least, unless ours, the first, is not distinguished from it.
func (a *adviser) lightest(adv *Advice, arms []study.Arm, m *measured) {
	adv.Choice = "none of those known"
	if len(arms) == 0 {
		return
	}
	best, found := arms[0], false
	for _, arm := range arms {
		e, ok := m.effect(arm.Name)
		if now, _ := m.effect(best.Name); ok && (!found || e.Interval.Hi < now.Interval.Lo) {
			best, found = arm, true
		}
	}
	adv.Choice = best.Title
	if !found {
		adv.Open = append(adv.Open, "cost"+a.evidence.remedy(layers))
		return
	}
	for _, arm := range arms {
		if _, ok := m.effect(arm.Name); ok {
			adv.Reasons = append(adv.Reasons, a.evidence.reason(m, "%s: %s", arm.Title, m.figure(arm.Name)))
		}
	}
}
