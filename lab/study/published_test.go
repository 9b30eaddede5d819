package study_test

import (
	"testing"

	"github.com/tarehq/tare/lab/study"
)

func TestParsePublished(t *testing.T) {
	all, err := study.ParsePublished("claims.yaml", []byte(`
claims:
  - id: P1.a
    kind: study
    study: nesting
    statement: Costs 1 µs.
    conditions: wrk
    values: [{arm: none, us: 1.5, rps: 98400, kept: true}]
  - {id: P1.b, kind: function, statement: Does it.}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(all), 2; got != want {
		t.Fatalf("got %d claims, want %d", got, want)
	}
	row := all[0].Values[0]
	for name, want := range map[string]any{"arm": "none", "us": 1.5, "rps": 98400.0, "kept": true} {
		if row[name] != want {
			t.Errorf("value %s: got %v, want %v", name, row[name], want)
		}
	}
	if all[1].Kind != study.Function || all[1].Study != "" || all[1].Values != nil {
		t.Errorf("got %+v, want a function without study and values", all[1])
	}
}

func TestParsePublishedMistakes(t *testing.T) {
	_, err := study.ParsePublished("claims.yaml", []byte(`claims:
  - {id: P1.a, kind: study, statement: x}
  - {id: P1.a, kind: instrument, study: nesting, statement: x, values: [{US: [1]}]}
  - {id: P1.c, kind: test, statment: x}
  - {id: P1.d, kind: instrument, statement: x, verdict: confirmed}
  - {id: P1.e, kind: study, study: s, statement: x, verdict: refuted, by: make test}
`))
	want := `claims.yaml:2:5: claim P1.a is of kind study; a claim of kind study names its study, and no other does
claims.yaml:3:5: claim P1.a is of kind instrument; a claim of kind study names its study, and no other does
claims.yaml:3:10: claims[0] is P1.a already; ids are unique
claims.yaml:3:74: values[0]: got the name "US"; want lower-case letters, digits and _
claims.yaml:4:22: kind: got "test"; a kind is one of: study, instrument, function
claims.yaml:4:28: the claim has no key "statment"; did you mean statement? allowed: id, kind, study, statement, conditions, verdict, by, note, values
claims.yaml:5:5: claim P1.d: verdict and by stand together, and not with a claim of kind study, whose verdict is its study's
claims.yaml:6:62: verdict: got "refuted"; a verdict is one of: confirmed, contradicted, not comparable
claims.yaml:6:75: by: got "make test"; want a command such as go test ./cost -run TestBill`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
