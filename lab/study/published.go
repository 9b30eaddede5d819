package study

import (
	"fmt"
	"slices"
)

// Published is a claim as it stands in a list of published claims.
type Published struct {
	ID        string `json:"id"` // such as P1.nesting: publication, dot, subject
	Kind      Role   `json:"kind"`
	Study     string `json:"study,omitzero"` // that tests it; "" when Kind is not Tested
	Statement string `json:"statement"`
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
}

// Role says what answers a published claim.
type Role string

// The roles.
const (
	Tested     Role = "study"      // a study puts it to the test
	Instrument Role = "instrument" // it describes a way to measure, which tare offers or not
	Function   Role = "function"   // it describes what software does, shown by its tests
)

// ParsePublished reads and checks a list of published claims; name is what the
// file is called in messages. The error is Mistakes.
func ParsePublished(name string, data []byte) ([]Published, error) {
	r := newReader(name)
	var all []Published
	decode(r, data, publishedList(), &all)
	for i, p := range all {
		path := fmt.Sprintf("claims[%d]", i)
		if first := slices.IndexFunc(all, func(o Published) bool { return o.ID == p.ID }); first < i && p.ID != "" {
			r.wrong(path+".id", "claims[%d] is %s already; ids are unique", first, p.ID)
		}
		if (p.Kind == Tested) != (p.Study != "") && p.Kind != "" {
			r.wrong(path, "claim %s is of kind %s; a claim of kind %s names its study, and no other does", p.ID, p.Kind, Tested)
		}
		if (p.Verdict != "") != (p.By != "") || p.Verdict != "" && p.Kind == Tested {
			r.wrong(path, "claim %s: verdict and by stand together, and not with a claim of kind %s, whose verdict is its study's", p.ID, Tested)
		}
	}
	if err := r.mistakes.err(); err != nil {
		return nil, err
	}
	return all, nil
}

func publishedList() shape[[]Published] {
	one := object("the claim", []key[Published]{
		field("id", "The claim's name.", claimName(), func(p *Published) *string { return &p.ID }).must(),
		field("kind", "What answers it.", oneOf("a kind is one of", Tested, Instrument, Function), func(p *Published) *Role { return &p.Kind }).must(),
		field("study", "The study that tests it.", words(), func(p *Published) *string { return &p.Study }),
		field("statement", "What is claimed.", words(), func(p *Published) *string { return &p.Statement }).must(),
		field("conditions", "How the figures were obtained.", words(), func(p *Published) *string { return &p.Conditions }),
		field("verdict", "What came of it, where no study tests it.", oneOf("a verdict is one of", "confirmed", "contradicted", "not comparable"), func(p *Published) *string { return &p.Verdict }),
		field("by", "The test that the verdict comes from, as the command that runs it.", matching(`^go test \./[a-z/]+ -run [A-Za-z]+$`, "a command such as go test ./cost -run TestBill"), func(p *Published) *string { return &p.By }),
		field("note", "What the verdict is about, and what it is not.", words(), func(p *Published) *string { return &p.Note }),
		field("values", "The figures.", list(dict(`^[a-z0-9_]+$`, "lower-case letters, digits and _", anything()), 1), func(p *Published) *[]map[string]any { return &p.Values }),
	})
	return object("the list", []key[[]Published]{
		field("claims", "The claims.", list(one, 1), func(all *[]Published) *[]Published { return all }).must(),
	})
}
