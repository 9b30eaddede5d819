// Package published reads lists of claims that others have published.
//
// A claim names its source, what is claimed and under which conditions, every figure, and
// what answers it: a study, or a test. Nothing is judged here.
package published

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarehq/tare/internal/shape"
)

// Publication is where claims were published.
type Publication struct {
	ID      string `json:"id"` // such as P1, with which the ids of its claims begin
	Title   string `json:"title"`
	Subject string `json:"subject"` // in English
}

// Claim is a claim as it stands in a list of published claims.
type Claim struct {
	ID        string      `json:"id"` // such as P1.nesting: publication, dot, subject
	Kind      Role        `json:"kind"`
	Study     string      `json:"study,omitzero"` // that tests it; "" when Kind is not Tested
	Source    Publication `json:"source"`
	Section   string      `json:"section,omitzero"` // of the source; "" = not noted
	Statement string      `json:"statement"`
	// Conditions under which the figures were obtained; "" = not published.
	Conditions string `json:"conditions,omitzero"`
	// Values are the published figures, a map a row. The names of figures end
	// in their unit, such as mean_us; values are text, float64 or bool.
	Values []map[string]any `json:"values,omitzero"`
	// Verdict is what came of a claim that no study tests, and By the test of
	// this repository that it comes from, as the command that runs it; both are
	// "" where nothing has been shown yet.
	Verdict string `json:"verdict,omitzero"`
	By      string `json:"by,omitzero"`
	Note    string `json:"note,omitzero"` // what the verdict is about, and what not; "" = all that is claimed
	// Audit says which published set-up the arms have to reproduce first; "" =
	// nothing beyond Conditions.
	Audit string `json:"audit,omitzero"`
}

// Role says what answers a published claim.
type Role string

// The roles.
const (
	Tested     Role = "study"      // a study puts it to the test
	Instrument Role = "instrument" // it describes a way to measure, which tare offers or not
	Function   Role = "function"   // it describes what software does, shown by its tests
	Property   Role = "fact"       // it says what is so in software, read from its source or asked of it by a test
)

// Parse reads and checks a list of published claims; name is what the
// file is called in messages. The error is [shape.Mistakes].
func Parse(name string, data []byte) ([]Claim, error) {
	r := shape.NewReader(name, "study-files")
	var f claimList
	shape.Decode(r, data, listShape(), &f)
	for i, src := range f.sources {
		if first := slices.IndexFunc(f.sources, func(o Publication) bool { return o.ID == src.ID }); first < i && src.ID != "" {
			r.Wrong(fmt.Sprintf("sources[%d].id", i), "sources[%d] is %s already; ids are unique", first, src.ID)
		}
	}
	for i := range f.claims {
		f.checkClaim(r, i)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return f.claims, nil
}

// claimList is what a list of published claims holds.
type claimList struct {
	sources []Publication
	claims  []Claim
}

// checkClaim checks what the shape of claim i does not say, and gives it its source.
func (f *claimList) checkClaim(r *shape.Reader, i int) {
	p, path := &f.claims[i], fmt.Sprintf("claims[%d]", i)
	if first := slices.IndexFunc(f.claims, func(o Claim) bool { return o.ID == p.ID }); first < i && p.ID != "" {
		r.Wrong(path+".id", "claims[%d] is %s already; ids are unique", first, p.ID)
	}
	if (p.Kind == Tested) != (p.Study != "") && p.Kind != "" {
		r.Wrong(path, "claim %s is of kind %s; a claim of kind %s names its study, and no other does", p.ID, p.Kind, Tested)
	}
	if (p.Verdict != "") != (p.By != "") || p.Verdict != "" && p.Kind == Tested {
		r.Wrong(path, "claim %s: verdict and by stand together, and not with a claim of kind %s, whose verdict is its study's", p.ID, Tested)
	}
	from, _, _ := strings.Cut(p.ID, ".")
	if at := slices.IndexFunc(f.sources, func(s Publication) bool { return s.ID == from }); at >= 0 {
		p.Source = f.sources[at]
	} else if p.ID != "" {
		r.Wrong(path+".id", "claim %s: no source is called %s", p.ID, from)
	}
}

// ID is a claim's name.
func ID() shape.Of[string] {
	return shape.Matching(`^[A-Za-z0-9]+([.-][A-Za-z0-9]+)*$`, "letters and digits, parts joined by single dots or dashes, such as P1.nesting")
}

func listShape() shape.Of[claimList] {
	one := shape.Object("the claim", []shape.Key[Claim]{
		shape.Field("id", "The claim's name.", ID(), func(p *Claim) *string { return &p.ID }).Must(),
		shape.Field("kind", "What answers it.", shape.OneOf("a kind is one of", Tested, Instrument, Function, Property), func(p *Claim) *Role { return &p.Kind }).Must(),
		shape.Field("study", "The study that tests it.", shape.Words(), func(p *Claim) *string { return &p.Study }),
		shape.Field("section", "Where in the source it stands.", shape.Line(), func(p *Claim) *string { return &p.Section }),
		shape.Field("statement", "What is claimed.", shape.Words(), func(p *Claim) *string { return &p.Statement }).Must(),
		shape.Field("conditions", "How the figures were obtained.", shape.Words(), func(p *Claim) *string { return &p.Conditions }),
		shape.Field("verdict", "What came of it, where no study tests it.", shape.OneOf("a verdict is one of", "confirmed", "contradicted", "not comparable"), func(p *Claim) *string { return &p.Verdict }),
		shape.Field("by", "The test that the verdict comes from, as the command that runs it.", shape.Matching(`^go (-C [a-z/]+ )?test \./[a-z/]+ -run [A-Za-z]+$`, "a command such as go test ./cost -run TestBill"), func(p *Claim) *string { return &p.By }),
		shape.Field("note", "What the verdict is about, and what it is not.", shape.Words(), func(p *Claim) *string { return &p.Note }),
		shape.Field("audit", "The published set-up that the arms have to reproduce first.", shape.Words(), func(p *Claim) *string { return &p.Audit }),
		shape.Field("values", "The figures.", shape.List(shape.Dict(`^[a-z0-9_]+$`, "lower-case letters, digits and _", shape.Anything()), 1), func(p *Claim) *[]map[string]any { return &p.Values }),
	})
	source := shape.Object("the source", []shape.Key[Publication]{
		shape.Field("id", "What the ids of its claims begin with.", ID(), func(s *Publication) *string { return &s.ID }).Must(),
		shape.Field("title", "Its title.", shape.Line(), func(s *Publication) *string { return &s.Title }).Must(),
		shape.Field("subject", "What it is about, in English.", shape.Line(), func(s *Publication) *string { return &s.Subject }).Must(),
	})
	return shape.Object("the list", []shape.Key[claimList]{
		shape.Field("sources", "The publications.", shape.List(source, 1), func(f *claimList) *[]Publication { return &f.sources }).Must(),
		shape.Field("claims", "The claims.", shape.List(one, 1), func(f *claimList) *[]Claim { return &f.claims }).Must(),
	})
}
