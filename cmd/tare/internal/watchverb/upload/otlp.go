package upload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tarehq/tare/cost"
)

// What follows is ExportProfilesServiceRequest of opentelemetry/proto/collector/profiles/
// v1development in OTLP's JSON. The signal is in development: this is its version 1, which
// the Collector's receiver of v0.165.0 takes (go.opentelemetry.io/collector/pdata v1.71.0),
// and a request says so. Index 0 of every table is what stands for nothing.
const (
	otlpPath          = "/v1development/profiles"
	developmentField  = "OTLP-Profiles-Development-Version"
	developmentNumber = "1"
)

type exportRequest struct {
	Resources  [1]resourceProfiles `json:"resourceProfiles"`
	Dictionary dictionary          `json:"dictionary"`
}

type resourceProfiles struct {
	Resource struct {
		Attributes []keyValue `json:"attributes"`
	} `json:"resource"`
	Scopes [1]scopeProfiles `json:"scopeProfiles"`
}

type scopeProfiles struct {
	Scope    map[string]string `json:"scope"`
	Profiles [1]profile        `json:"profiles"`
}

type profile struct {
	Type     valueType `json:"sampleType"`
	Samples  []sample  `json:"samples"`
	Time     int64     `json:"timeUnixNano,string"`
	Duration int64     `json:"durationNano,string"`
}

type valueType struct {
	Type int32 `json:"typeStrindex"`
	Unit int32 `json:"unitStrindex"`
}

type sample struct {
	Stack      int32     `json:"stackIndex"`
	Attributes []int32   `json:"attributeIndices"`
	Values     [1]string `json:"values"`
}

type dictionary struct {
	Mappings   [1]struct{}      `json:"mappingTable"`
	Locations  table[location]  `json:"locationTable"`
	Functions  table[function]  `json:"functionTable"`
	Links      [1]struct{}      `json:"linkTable"`
	Strings    table[string]    `json:"stringTable"`
	Attributes table[attribute] `json:"attributeTable"`
	Stacks     []stack          `json:"stackTable"`
}

type location struct {
	Lines [1]line `json:"lines"`
}

type line struct {
	Function int32 `json:"functionIndex"`
	Line     int64 `json:"line,string"`
}

type function struct {
	Name  int32 `json:"nameStrindex"`
	File  int32 `json:"filenameStrindex"`
	Start int64 `json:"startLine,string"`
}

type attribute struct {
	Key   int32 `json:"keyStrindex"`
	Value value `json:"value"`
}

type stack struct {
	Locations []int32 `json:"locationIndices"`
}

type keyValue struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	String string `json:"stringValue"`
}

// table is one of a dictionary: each value once.
type table[V comparable] struct {
	list []V
	at   map[V]int32
}

// index returns where a value is in the table, which it adds it to. The first index is of
// nothing.
func (t *table[V]) index(v V) int32 {
	if t.at == nil {
		var nothing V
		t.list, t.at = []V{nothing}, map[V]int32{}
	}
	if v == t.list[0] {
		return 0
	}
	at, ok := t.at[v]
	if !ok {
		at = int32(len(t.list))
		t.at[v] = at
		t.list = append(t.list, v)
	}
	return at
}

// MarshalJSON writes the values. What stands for nothing is an empty message, but for a
// string.
func (t table[V]) MarshalJSON() ([]byte, error) {
	all := make([]any, max(1, len(t.list)))
	var nothing V
	if all[0] = any(struct{}{}); any(nothing) == any("") {
		all[0] = ""
	}
	for k := 1; k < len(t.list); k++ {
		all[k] = t.list[k]
	}
	return json.Marshal(all)
}

// otlp is the request for a profile.
func (p *Profile) otlp() ([]byte, error) {
	var out exportRequest
	d := &out.Dictionary
	d.Stacks = []stack{{Locations: []int32{}}}
	resource := &out.Resources[0]
	for _, l := range []Label{{"service.name", p.Service}, {"tare.build", p.Build}, {"tare.revision", p.Revision}} {
		if l.Value != "" {
			resource.Resource.Attributes = append(resource.Resource.Attributes, keyValue{l.Name, value{l.Value}})
		}
	}
	scope := &resource.Scopes[0]
	scope.Scope = map[string]string{"name": "github.com/tarehq/tare/cost/watch"}
	one := &scope.Profiles[0]
	one.Time, one.Duration = p.Begun.UnixNano(), int64(p.Duration)
	one.Type = valueType{d.Strings.index("cpu"), d.Strings.index("nanoseconds")}
	one.Samples = []sample{}
	for k := range p.Stacks {
		s := &p.Stacks[k]
		if s.Value < 1 {
			continue
		}
		owner, cause := p.Rules.Charge(s.Frames)
		one.Samples = append(one.Samples, sample{
			Stack: d.stack(s.Frames), Values: [1]string{fmt.Sprintf("%.0f", s.Value)},
			Attributes: []int32{
				d.attribute("tare.owner", owner.Name),
				d.attribute("tare.kind", cmp.Or(p.Kinds[owner.Name], owner.Kind.String())),
				d.attribute("tare.cause", cause.String()),
			},
		})
	}
	return json.Marshal(&out)
}

// stack adds a stack, innermost first.
func (d *dictionary) stack(frames []cost.Frame) int32 {
	all := make([]int32, len(frames))
	for k, f := range frames {
		fn := function{Name: d.Strings.index(f.Func), File: d.Strings.index(f.File), Start: int64(f.Decl)}
		all[k] = d.Locations.index(location{[1]line{{d.Functions.index(fn), int64(f.Line)}}})
	}
	d.Stacks = append(d.Stacks, stack{all})
	return int32(len(d.Stacks) - 1)
}

func (d *dictionary) attribute(key, text string) int32 {
	return d.Attributes.index(attribute{d.Strings.index(key), value{strings.ToValidUTF8(text, "\ufffd")}})
}

// judgeOTLP is what a receiver has against a profile; nil is nothing.
func judgeOTLP(resp *http.Response, text []byte) error {
	if err := judge(resp, text); err != nil {
		return err
	}
	var reply struct {
		Partial struct {
			Rejected json.Number `json:"rejectedProfiles"`
			Message  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return fmt.Errorf("it answered %s: %q, and OTLP wants JSON", resp.Status, text[:min(len(text), 200)])
	}
	if cmp.Or(reply.Partial.Rejected, "0") != "0" {
		return fmt.Errorf("it rejected the profile: %s", cmp.Or(reply.Partial.Message, "it does not say why"))
	}
	return nil
}
