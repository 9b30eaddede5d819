package adviseverb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/stats/unit"
)

// Advice is what to choose for one part of a service.
type Advice struct {
	Part    string   `json:"part"`
	Choice  string   `json:"choice"`
	Now     string   `json:"now,omitzero"` // what the service has
	Reasons []Reason `json:"reasons"`
	Open    []string `json:"open,omitzero"` // what no figure covers
}

// because adds a reason without a figure.
func (a *Advice) because(format string, args ...any) {
	a.Reasons = append(a.Reasons, Reason{Says: fmt.Sprintf(format, args...)})
}

// adviser chooses.
type adviser struct {
	needs    *needs
	service  *service
	evidence *evidence
}

// advise chooses each part.
func (a *adviser) advise() []Advice {
	var all []Advice
	var on option // the engine
	for _, p := range parts() {
		if p.name == router && on.lack[handlers] != "" {
			all = append(all, ownOf(on, router))
			continue
		}
		adv := a.choose(p)
		if i := slices.IndexFunc(p.options, func(o option) bool { return o.name == adv.Choice }); p.name == engine && i >= 0 {
			on = p.options[i]
		}
		all = append(all, adv)
	}
	if on.lack[handlers] != "" {
		return append(all, ownOf(on, "middlewares"))
	}
	return append(all, a.middlewares(on.name)...)
}

// ownOf is the advice for a part of an engine that takes no others.
func ownOf(engine option, part string) Advice {
	return Advice{
		Part: part, Choice: "of " + engine.name + " or made for it", Reasons: []Reason{{Says: engine.name + ": " + engine.lack[handlers]}},
		Open: []string{"those of " + engine.name + " among themselves: no study compares them"},
	}
}

// choose picks an option of a part: first what is needed rules some out, then the bound of
// memory does, then speed decides if it is asked for, else what is known, else the first.
func (a *adviser) choose(p part) Advice {
	adv := Advice{Part: p.name, Now: a.service.now[p.name], Reasons: []Reason{}}
	if len(p.asked) > 0 && adv.Now == "" && !slices.ContainsFunc(p.asked, func(word string) bool { return a.needs.set[word] }) {
		adv.Choice = "none"
		adv.because("nothing that was asked for needs one (%s do)", strings.Join(p.asked, ", "))
		return adv
	}
	left := a.ruleOut(p, &adv)
	left = a.withinMemory(p, left, &adv)
	if len(left) == 0 {
		adv.Choice = "none of those known"
		return adv
	}
	preferred := left[0]
	known := slices.IndexFunc(left, func(o option) bool { return slices.ContainsFunc(a.needs.know, o.goesBy) })
	if known >= 0 {
		preferred = left[known]
		adv.because("%s is known", preferred.name)
	}
	if !a.needs.set[speed] {
		if known < 0 {
			adv.because("%s is the plainest of what is left, and speed was not asked for", preferred.name)
		}
		adv.Choice = preferred.name
		return adv
	}
	adv.Choice = a.fastest(p, left, preferred, &adv).name
	return adv
}

// ruleOut keeps the options that meet what is needed.
func (a *adviser) ruleOut(p part, adv *Advice) []option {
	left := p.options
	for _, need := range a.needs.words {
		some := slices.ContainsFunc(p.options, func(o option) bool { return o.have[need] != "" })
		left = slices.DeleteFunc(slices.Clone(left), func(o option) bool {
			switch {
			case o.lack[need] != "":
				adv.because("%s is out for %s: %s", o.name, need, o.lack[need])
				return true
			case some && o.have[need] == "":
				return true
			case some:
				adv.because("%s for %s: %s", o.name, need, o.have[need])
			}
			return false
		})
	}
	return left
}

// withinMemory keeps the options that took no more than the bound at their peak, and behind
// them those of which that is not known.
func (a *adviser) withinMemory(p part, left []option, adv *Advice) []option {
	if a.needs.memory == 0 || p.memory.study == "" {
		return left
	}
	m := a.evidence.answer(p.memory)
	var within, unknown []option
	for _, o := range left {
		if m == nil || m.metric.Level(o.arm) == nil {
			unknown = append(unknown, o)
			continue
		}
		if m.metric.Level(o.arm).Median > a.needs.memory {
			adv.Reasons = append(adv.Reasons, a.evidence.reason(m, "%s is out: it took %s at the peak, more than %s", o.name, m.level(o.arm), unit.Format(a.needs.memory, unit.Bytes)))
			continue
		}
		within = append(within, o)
		adv.Reasons = append(adv.Reasons, a.evidence.reason(m, "%s took %s at the peak", o.name, m.level(o.arm)))
	}
	if len(unknown) > 0 {
		adv.Open = append(adv.Open, fmt.Sprintf("memory of %s%s", listNames(unknown), a.evidence.remedy(p.memory.study)))
	}
	return append(within, unknown...)
}

func listNames(all []option) string {
	var names []string
	for _, o := range all {
		names = append(names, o.name)
	}
	return strings.Join(names, ", ")
}

// fastest picks the option that the newest run found best, unless it does not tell that from
// the preferred one.
func (a *adviser) fastest(p part, left []option, preferred option, adv *Advice) option {
	m := a.evidence.answer(p.speed)
	var unknown []option
	best, found := preferred, false
	for _, o := range left {
		e, ok := m.effect(o.arm)
		if !ok {
			unknown = append(unknown, o)
			continue
		}
		if now, _ := m.effect(best.arm); !found || e.Value < now.Value {
			best, found = o, true
		}
	}
	if len(unknown) > 0 {
		adv.Open = append(adv.Open, fmt.Sprintf("speed of %s%s", listNames(unknown), a.evidence.remedy(p.speed.study)))
	}
	if !found {
		adv.Reasons = append(adv.Reasons, a.evidence.elsewhere(p.claims)...)
		adv.because("%s is chosen without a figure of its speed", preferred.name)
		return preferred
	}
	adv.Reasons = append(adv.Reasons, a.evidence.reason(m, "%s measured best: %s", best.name, m.figure(best.arm)))
	if best.name == preferred.name {
		return best
	}
	liked, ok := m.effect(preferred.arm)
	switch top, _ := m.effect(best.arm); {
	case !ok:
		return best
	case top.Interval.Hi < liked.Interval.Lo:
		adv.Reasons = append(adv.Reasons, a.evidence.reason(m, "%s measured worse: %s", preferred.name, m.figure(preferred.arm)))
		return best
	}
	adv.Reasons = append(adv.Reasons, a.evidence.reason(m, "%s shows no clear difference from it: %s", preferred.name, m.figure(preferred.arm)))
	return preferred
}

// remedy says what would cover a question of a study.
func (e *evidence) remedy(name string) string {
	if e.studies[name] == nil {
		return ": no study compares them"
	}
	return fmt.Sprintf(": `tare run --quick %s` would cover what its short form has", name)
}
