package block_test

import (
	"fmt"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/tarehq/tare/load/internal/block"
	"github.com/tarehq/tare/load/internal/h2"
	"github.com/tarehq/tare/load/internal/template"
)

// parse is text as a template whose records have a column id.
func parse(t *testing.T, text string) template.Template {
	t.Helper()
	parsed, err := template.Parse(text, &template.Source{Columns: []string{"id"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// Fields that vary are filled, those that all targets have are named by their place in the
// table, and a server reads the same whichever.
func TestBlocks(t *testing.T) {
	common := []block.Field{{Name: ":method", Value: template.Literal("POST")}, {Name: ":authority", Value: template.Literal("example.com")}}
	b := block.New([][]block.Field{
		append(common[:2:2], block.Field{Name: ":path", Value: parse(t, "/{{.id}}/x")}, block.Field{Name: "content-length", Sized: true}),
		append(common[:2:2], block.Field{Name: ":path", Value: template.Literal("/fixed")}, block.Field{Name: "x-empty"}),
	})
	want := []string{
		"[:method POST :authority example.com :path /7/x content-length 12]",
		"[:method POST :authority example.com :path /fixed x-empty ]",
	}
	dec := hpack.NewDecoder(4096, nil)
	for i, table := range []h2.Table{h2.Bare, h2.Fill, h2.Kept, h2.Kept, h2.Bare} {
		for target := range want {
			if table == h2.Fill && target > 0 {
				continue // once a connection
			}
			raw := b.Append(nil, target, table, block.Filling{Record: []string{"7"}, Size: 12})
			fields, err := dec.DecodeFull(raw)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range fields {
				got = append(got, f.Name, f.Value)
			}
			if fmt.Sprint(got) != want[target] {
				t.Errorf("step %d, target %d: got %v, want %v", i, target, got, want[target])
			}
		}
	}
	if b.Need() != len(":authority")+len("example.com")+32 {
		t.Errorf("the shared fields take %d bytes", b.Need())
	}
}
