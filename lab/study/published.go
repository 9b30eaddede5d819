package study

import (
	"fmt"
	"slices"
	"strings"
)

// Publication is where claims were published.
type Publication struct {
	ID      string `json:"id"` // such as P1, with which the ids of its claims begin
	Title   string `json:"title"`
	Subject string `json:"subject"` // in English
}

// Published is a claim as it stands in a list of published claims.
type Published struct {
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

// ParsePublished reads and checks a list of published claims; name is what the
// file is called in messages. The error is Mistakes.
func ParsePublished(name string, data []byte) ([]Published, error) {
	r := newReader(name)
	var f claimList
	decode(r, data, publishedList(), &f)
	for i, src := range f.sources {
		if first := slices.IndexFunc(f.sources, func(o Publication) bool { return o.ID == src.ID }); first < i && src.ID != "" {
			r.wrong(fmt.Sprintf("sources[%d].id", i), "sources[%d] is %s already; ids are unique", first, src.ID)
		}
	}
	for i := range f.claims {
		f.checkClaim(r, i)
	}
	if err := r.mistakes.err(); err != nil {
		return nil, err
	}
	return f.claims, nil
}

// claimList is what a list of published claims holds.
type claimList struct {
	sources []Publication
	claims  []Published
}

// checkClaim checks what the shape of claim i does not say, and gives it its source.
func (f *claimList) checkClaim(r *reader, i int) {
	p, path := &f.claims[i], fmt.Sprintf("claims[%d]", i)
	if first := slices.IndexFunc(f.claims, func(o Published) bool { return o.ID == p.ID }); first < i && p.ID != "" {
		r.wrong(path+".id", "claims[%d] is %s already; ids are unique", first, p.ID)
	}
	if (p.Kind == Tested) != (p.Study != "") && p.Kind != "" {
		r.wrong(path, "claim %s is of kind %s; a claim of kind %s names its study, and no other does", p.ID, p.Kind, Tested)
	}
	if (p.Verdict != "") != (p.By != "") || p.Verdict != "" && p.Kind == Tested {
		r.wrong(path, "claim %s: verdict and by stand together, and not with a claim of kind %s, whose verdict is its study's", p.ID, Tested)
	}
	from, _, _ := strings.Cut(p.ID, ".")
	if at := slices.IndexFunc(f.sources, func(s Publication) bool { return s.ID == from }); at >= 0 {
		p.Source = f.sources[at]
	} else if p.ID != "" {
		r.wrong(path+".id", "claim %s: no source is called %s", p.ID, from)
	}
}

func publishedList() shape[claimList] {
	one := object("the claim", []key[Published]{
		field("id", "The claim's name.", claimName(), func(p *Published) *string { return &p.ID }).must(),
		field("kind", "What answers it.", oneOf("a kind is one of", Tested, Instrument, Function, Property), func(p *Published) *Role { return &p.Kind }).must(),
		field("study", "The study that tests it.", words(), func(p *Published) *string { return &p.Study }),
		field("section", "Where in the source it stands.", line(), func(p *Published) *string { return &p.Section }),
		field("statement", "What is claimed.", words(), func(p *Published) *string { return &p.Statement }).must(),
		field("conditions", "How the figures were obtained.", words(), func(p *Published) *string { return &p.Conditions }),
		field("verdict", "What came of it, where no study tests it.", oneOf("a verdict is one of", "confirmed", "contradicted", "not comparable"), func(p *Published) *string { return &p.Verdict }),
		field("by", "The test that the verdict comes from, as the command that runs it.", matching(`^go test \./[a-z/]+ -run [A-Za-z]+$`, "a command such as go test ./cost -run TestBill"), func(p *Published) *string { return &p.By }),
		field("note", "What the verdict is about, and what it is not.", words(), func(p *Published) *string { return &p.Note }),
		field("audit", "The published set-up that the arms have to reproduce first.", words(), func(p *Published) *string { return &p.Audit }),
		field("values", "The figures.", list(dict(`^[a-z0-9_]+$`, "lower-case letters, digits and _", anything()), 1), func(p *Published) *[]map[string]any { return &p.Values }),
	})
	source := object("the source", []key[Publication]{
		field("id", "What the ids of its claims begin with.", claimName(), func(s *Publication) *string { return &s.ID }).must(),
		field("title", "Its title.", line(), func(s *Publication) *string { return &s.Title }).must(),
		field("subject", "What it is about, in English.", line(), func(s *Publication) *string { return &s.Subject }).must(),
	})
	return object("the list", []key[claimList]{
		field("sources", "The publications.", list(source, 1), func(f *claimList) *[]Publication { return &f.sources }).must(),
		field("claims", "The claims.", list(one, 1), func(f *claimList) *[]Published { return &f.claims }).must(),
	})
}
