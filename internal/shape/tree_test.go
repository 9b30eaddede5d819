package shape_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tarehq/tare/internal/shape"
)

// TestTree is the table of what YAML becomes, and what is wrong with it.
func TestTree(t *testing.T) {
	for _, c := range []struct{ yaml, want, wrong string }{
		{"a: 1", `{"a":1}`, ""},
		{"a: [1, -2, 3.5, true, '5', x: y]", `{"a":[1,-2,3.5,true,"5",{"x":"y"}]}`, ""},
		{"a: &x {b: 1}\nc: *x", `{"a":{"b":1},"c":{"b":1}}`, ""},
		{"\ufeffa: 1\r\nb: 60s\r\n", `{"a":1,"b":"60s"}`, ""},
		{"a: |\n  b\nc: \"d\\n\"\n", `{"a":"b\n","c":"d\n"}`, ""},
		{"- a\n- b: 50%\n", `["a",{"b":"50%"}]`, ""},
		{"a: 1\na: 2", "", "f:2:1: a is there twice"},
		{"a:\n", "", "a has no value"},
		{"a: *x", "", "f:1:4: alias *x has no anchor"},
		{"a: 1\n<<: {b: 1}", "", "f:2:1: merge keys"},
		{"a: 007", "", "some read as octal"},
		{"a: .inf", "", "f:1:4: a: got"},
		{"a: &x [*x]", "", "too deep"},
		{"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]", "", "the file says too much"},
	} {
		r := shape.NewReader("f", "topics")
		var v any
		shape.Decode(r, []byte(c.yaml), shape.Tree(), &v)
		if err := r.Err(); err != nil || c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q: got %v, want %q", c.yaml, err, c.wrong)
			}
			continue
		}
		if got, err := json.Marshal(v); err != nil || string(got) != c.want {
			t.Errorf("%q: got %s, %v, want %s", c.yaml, got, err, c.want)
		}
	}
}

// TestTreeWrong finds where a value stood, or what is nearest.
func TestTreeWrong(t *testing.T) {
	for path, want := range map[string]string{
		"upstreams.api.servers[1].address": "f:5:18: x",
		"upstreams.api.servers[1].weight":  "f:5:9: x",
		"upstreams.api.check.path":         "f:3:5: x",
		"routes[7].path":                   "f:6:9: x",
		"nothing":                          "f:1:1: x",
		"":                                 "f:1:1: x",
	} {
		r := shape.NewReader("f", "topics")
		var v any
		shape.Decode(r, []byte("upstreams:\n  api:\n    servers:\n      - address: a:1\n      - address: b:1\nroutes: []\n"), shape.Tree(), &v)
		r.Wrong(path, "x")
		if err := r.Err(); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}
