package cireport_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tarehq/tare/cost/diff"
	"github.com/tarehq/tare/lab/cireport"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/bound"
)

// gate is the budget of an arm's metric that came out so.
func gate(metric, arm string, result bound.Outcome) verdict.Gated {
	m, _ := study.MetricNamed(metric)
	c := &verdict.Comparison{Metric: m, Workload: "load", Arm: arm, Scale: verdict.Ratio, N: 12, Alpha: 0.05, Anytime: true, Difference: verdict.Estimate{Level: 0.95, Anytime: true}}
	c.Effect.Effect, c.Effect.Interval = math.Log(1.11), stats.Interval{Lo: math.Log(1.09), Hi: math.Log(1.13)}
	return verdict.Gated{Comparison: c, Budget: 0.05, Result: result}
}

// source has an owner that became dearer in a function of the repository, one that became
// cheaper, and one of whose functions none is in the repository.
func source(gates ...verdict.Gated) comment.Source {
	a := &verdict.Analysis{Manifest: record.Manifest{Study: study.Study{Name: "ab", Control: "api@main"}, Tare: "v0.1.0",
		Started: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Ended: time.Date(2026, 1, 2, 15, 5, 5, 0, time.UTC)}}
	row := func(owner, function, file string, line int, size float64) diff.Row {
		return diff.Row{Owner: owner, Where: owner + ":1", Function: function, File: file, Line: line, A: 500, B: 500 + size, Diff: size, Lo: size - 100, Hi: size + 100, Tested: true, Differs: true}
	}
	const audit, far = "audit.(*handler).ServeHTTP", "cors.(*Cors).Handler.func"
	r := &diff.Result{Per: "request",
		Owners: []diff.Row{row(audit, "", "example.com/shop/audit/audit.go", 12, 6600), row("gzip.New", "", "example.com/shop/gzip/gzip.go", 9, -3000),
			row(far, "", "github.com/rs/cors@v1.11.0/cors.go", 200, 900)},
		Functions: []diff.Row{row(audit, "example.com/shop/audit.wrap", "example.com/shop/audit/audit.go", 20, 6580), row(audit, "example.com/shop/audit.sign", "example.com/shop/audit/sign.go", 7, 6500),
			row(audit, "crypto/sha256.block", "crypto/sha256/sha256.go", 99, 6400)},
	}
	return comment.Source{Analysis: a, Gates: gates, Changes: []comment.Change{{Workload: "load", Arm: "api", CPU: r}}}
}

// places knows the module example.com/shop, which is in the folder services/shop.
func places(file string) string {
	rest, ok := strings.CutPrefix(file, "example.com/shop/")
	if !ok {
		return ""
	}
	return "services/shop/" + rest
}

func write(t *testing.T, to func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := to(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestJUnit(t *testing.T) {
	withheld := gate("startup", "api", bound.Inconclusive)
	withheld.Withheld = `the arm "api" <left>`
	text := write(t, func(w io.Writer) error {
		return cireport.JUnit(w, source(gate("cpu_per_request", "api", bound.Failed), gate("rss_peak", "api", bound.Held), withheld))
	})
	type reason struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	var got struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []struct {
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Skipped  int    `xml:"skipped,attr"`
			Time     string `xml:"time,attr"`
			Cases    []struct {
				Name    string  `xml:"name,attr"`
				Class   string  `xml:"classname,attr"`
				Failure *reason `xml:"failure"`
				Skipped *reason `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(got.Suites) != 1 || got.Suites[0].Tests != 3 || got.Suites[0].Failures != 1 || got.Suites[0].Skipped != 1 || got.Suites[0].Time != "60.000" {
		t.Fatalf("got %+v", got.Suites)
	}
	cases := got.Suites[0].Cases
	if f := cases[0].Failure; f == nil || !strings.Contains(f.Message, "+11.0 % (95 % anytime interval +9.0 to +13.0 %), budget +5.0 %") ||
		!strings.Contains(f.Text, "audit.(*handler).ServeHTTP of api: +6.60 µs CPU") || strings.Contains(f.Text, "gzip") {
		t.Errorf("the failure is %+v", f)
	}
	if cases[1].Failure != nil || cases[1].Skipped != nil || cases[1].Class != "tare.ab.load" {
		t.Errorf("what held is %+v", cases[1])
	}
	if s := cases[2].Skipped; s == nil || !strings.Contains(s.Message, `the arm "api" <left>`) || cases[2].Name != "start-up of api" {
		t.Errorf("what is not compared is %+v", cases[2])
	}
}

// required is what SARIF 2.1.0 and code scanning want of the objects that are written.
const required = `{
	"type": "object", "required": ["version", "runs"],
	"properties": {
		"$schema": {"type": "string", "format": "uri"}, "version": {"const": "2.1.0"},
		"runs": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["tool", "results"], "properties": {
			"tool": {"type": "object", "required": ["driver"], "properties": {"driver": {"type": "object", "required": ["name", "rules"], "properties": {
				"name": {"type": "string", "minLength": 1},
				"rules": {"type": "array", "uniqueItems": true, "items": {"type": "object", "required": ["id", "shortDescription"], "properties": {
					"shortDescription": {"type": "object", "required": ["text"]}, "fullDescription": {"type": "object", "required": ["text"]}, "help": {"type": "object", "required": ["text"]}}}}}}}},
			"results": {"type": "array", "items": {"type": "object", "required": ["message", "ruleId", "locations", "partialFingerprints"], "properties": {
				"message": {"type": "object", "required": ["text"]}, "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": 0},
				"level": {"enum": ["none", "note", "warning", "error"]},
				"partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
				"locations": {"type": "array", "minItems": 1, "maxItems": 10, "items": {"type": "object", "required": ["physicalLocation"], "properties": {
					"physicalLocation": {"type": "object", "required": ["artifactLocation", "region"], "properties": {
						"artifactLocation": {"type": "object", "required": ["uri"], "properties": {"uri": {"type": "string", "pattern": "^[^/:]+(/[^/:]+)*$"}}},
						"region": {"type": "object", "required": ["startLine"], "properties": {"startLine": {"type": "integer", "minimum": 1}}}}}}}}}}}}}}}}`

func TestSARIF(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(required), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		gate  bound.Outcome
		level string
	}{{bound.Failed, "error"}, {bound.Inconclusive, "warning"}, {bound.Held, "note"}} {
		text := write(t, func(w io.Writer) error {
			return cireport.SARIF(w, source(gate("cpu_per_request", "api", tt.gate)), places)
		})
		var any any
		if err := json.Unmarshal(text, &any); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(any); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		var got struct {
			Runs []struct {
				Results []struct {
					Level     string
					Message   struct{ Text string }
					Locations []struct {
						PhysicalLocation struct {
							ArtifactLocation struct{ URI string }
							Region           struct{ StartLine int }
						}
						LogicalLocations []struct{ FullyQualifiedName string }
					}
				}
			}
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Runs) != 1 || len(got.Runs[0].Results) != 1 {
			t.Fatalf("got %+v, want the one owner that is in the repository and dearer", got.Runs)
		}
		r := got.Runs[0].Results[0]
		at := r.Locations[0]
		if r.Level != tt.level || at.PhysicalLocation.ArtifactLocation.URI != "services/shop/audit/sign.go" || at.PhysicalLocation.Region.StartLine != 7 ||
			at.LogicalLocations[0].FullyQualifiedName != "example.com/shop/audit.sign" || !strings.Contains(r.Message.Text, "+6.60 µs CPU a request (95 % interval +6.50 µs to +6.70 µs); in ") {
			t.Errorf("got %+v, want the innermost function of the repository, level %s", r, tt.level)
		}
	}
}

func TestBadge(t *testing.T) {
	for _, tt := range []struct {
		gates []verdict.Gated
		want  string
	}{
		{nil, `{"schemaVersion":1,"label":"ab","message":"passed","color":"brightgreen"}`},
		{[]verdict.Gated{gate("rss_peak", "api", bound.Inconclusive), gate("startup", "api", bound.Held)}, `{"schemaVersion":1,"label":"ab","message":"inconclusive","color":"yellow"}`},
		{[]verdict.Gated{gate("rss_peak", "api", bound.Inconclusive), gate("cpu_per_request", "api", bound.Failed)}, `{"schemaVersion":1,"label":"ab","message":"CPU per request +11.0 %","color":"red"}`},
	} {
		var got bytes.Buffer
		if err := json.Compact(&got, write(t, func(w io.Writer) error { return cireport.Badge(w, source(tt.gates...)) })); err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(got.String()) != tt.want {
			t.Errorf("got %s, want %s", got.String(), tt.want)
		}
	}
}
