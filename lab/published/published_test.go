package published_test

import (
	"testing"

	"github.com/tarehq/tare/lab/published"
)

func TestParse(t *testing.T) {
	all, err := published.Parse("claims.yaml", []byte(`
sources: [{id: P1, title: Of filters, subject: filters}]
claims:
  - id: P1.a
    section: chapter 1
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
	if got, want := all[0].Source, (published.Publication{ID: "P1", Title: "Of filters", Subject: "filters"}); got != want || all[0].Section != "chapter 1" {
		t.Errorf("got source %+v, section %q; want %+v, chapter 1", got, all[0].Section, want)
	}
	row := all[0].Values[0]
	for name, want := range map[string]any{"arm": "none", "us": 1.5, "rps": 98400.0, "kept": true} {
		if row[name] != want {
			t.Errorf("value %s: got %v, want %v", name, row[name], want)
		}
	}
	if all[1].Kind != published.Function || all[1].Study != "" || all[1].Values != nil {
		t.Errorf("got %+v, want a function without study and values", all[1])
	}
}

func TestParseMistakes(t *testing.T) {
	_, err := published.Parse("claims.yaml", []byte(`sources: [{id: P1, title: x, subject: x}, {id: P1, title: y, subject: y}]
claims:
  - {id: P1.a, kind: study, statement: x}
  - {id: P1.a, kind: instrument, study: nesting, statement: x, values: [{US: [1]}]}
  - {id: P1.c, kind: test, statment: x}
  - {id: P1.d, kind: instrument, statement: x, verdict: confirmed}
  - {id: P1.e, kind: study, study: s, statement: x, verdict: refuted, by: make test}
  - {id: P2.f, kind: fact, statement: x}
`))
	want := `claims.yaml:1:48: sources[0] is P1 already; ids are unique
claims.yaml:3:5: claim P1.a is of kind study; a claim of kind study names its study, and no other does
claims.yaml:4:5: claim P1.a is of kind instrument; a claim of kind study names its study, and no other does
claims.yaml:4:10: claims[0] is P1.a already; ids are unique
claims.yaml:4:74: values[0]: got the name "US"; want lower-case letters, digits and _
claims.yaml:5:22: kind: got "test"; a kind is one of: study, instrument, function, fact
claims.yaml:5:28: the claim has no key "statment"; did you mean statement? allowed: id, kind, study, section, statement, conditions, verdict, by, note, audit, values
claims.yaml:6:5: claim P1.d: verdict and by stand together, and not with a claim of kind study, whose verdict is its study's
claims.yaml:7:62: verdict: got "refuted"; a verdict is one of: confirmed, contradicted, not comparable
claims.yaml:7:75: by: got "make test"; want a command such as go test ./cost -run TestBill
claims.yaml:8:10: claim P2.f: no source is called P2`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
