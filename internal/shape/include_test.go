package shape_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tarehq/tare/internal/shape"
)

type inner struct{ size int }

type outer struct {
	other string
	part  shape.Included[inner]
	kind  string
}

func outerShape() shape.Of[outer] {
	in := shape.Object("the part", []shape.Key[inner]{
		shape.Field("size", "How large it is.", shape.Integer(1, 9), func(i *inner) *int { return &i.size }).Must(),
	})
	return shape.Object("the file", []shape.Key[outer]{
		shape.Field("other", "Anything.", shape.Line(), func(o *outer) *string { return &o.other }),
		shape.Field("part", "A part, or its file.", shape.Include(in), func(o *outer) *shape.Included[inner] { return &o.part }),
		shape.Field("kind", "A word, or a number of them.", shape.OneOf("kinds are", "one", "two").Or(`^x[0-9]+$`, strings.ToUpper), func(o *outer) *string { return &o.kind }),
	})
}

// TestInclude reads a value in its place, the name of its file, and what is neither.
func TestInclude(t *testing.T) {
	for _, c := range []struct {
		yaml string
		file string
		size int
		tree string
		err  string
	}{
		{"part: {size: 3}", "", 3, `{"size":3}`, ""},
		{"other: &n a\npart:\n  size: 3", "", 3, `{"size":3}`, ""},
		{"part: a.yaml", "a.yaml", 0, "null", ""},
		{"part: {size: 0}", "", 0, "", "f:1:14: size: got the number 0; want a whole number from 1 to 9"},
		{"part: [1]", "", 0, "", "f:1:7: the part: got a list; want a mapping with the keys size"},
		{"part: {}", "", 0, "", "f:1:7: the part lacks the key size: How large it is."},
	} {
		r := shape.NewReader("f", "topics")
		var o outer
		shape.Decode(r, []byte(c.yaml), outerShape(), &o)
		if err := r.Err(); err != nil || c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%q: got %v, want %s", c.yaml, err, c.err)
			}
			continue
		}
		tree, err := json.Marshal(o.part.Tree)
		if err != nil || o.part.File != c.file || o.part.Value.size != c.size || string(tree) != c.tree {
			t.Errorf("%q: got %+v, tree %s, %v", c.yaml, o.part, tree, err)
		}
	}
}

// TestOr reads text of a form, and has the messages of the rest.
func TestOr(t *testing.T) {
	for text, want := range map[string]string{"one": "one", "x12": "X12", "'x1'": "X1"} {
		r := shape.NewReader("f", "topics")
		var o outer
		shape.Decode(r, []byte("kind: "+text), outerShape(), &o)
		if err := r.Err(); err != nil || o.kind != want {
			t.Errorf("%s: got %q, %v, want %q", text, o.kind, err, want)
		}
	}
	for text, want := range map[string]string{"x": "kinds are: one, two", "tow": "did you mean two?", "1": "got the number 1"} {
		r := shape.NewReader("f", "topics")
		var o outer
		shape.Decode(r, []byte("kind: "+text), outerShape(), &o)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	schema, err := outerShape().Encode("file", nil)
	if err != nil || !strings.Contains(string(schema), `"pattern": "^x[0-9]+$"`) || !strings.Contains(string(schema), `"two"`) {
		t.Errorf("the schema lacks a form: %s, %v", schema, err)
	}
}
