package study_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/study"
)

const page = "../../docs/study-files.md"

// node is a JSON Schema, as far as keys go.
type node struct {
	Properties map[string]node
	Items      *node
	Enum       []string
	OneOf      []struct{ Enum []string }
	Defs       map[string]node `json:"$defs"`
}

// words are all keys and listed values in a schema.
func (n node) words() []string {
	all := slices.Clone(n.Enum)
	for _, form := range n.OneOf { // a flow has a page of its own
		all = append(all, form.Enum...)
	}
	for name, of := range n.Properties {
		all = append(append(all, name), of.words()...)
	}
	if n.Items != nil {
		all = append(all, n.Items.words()...)
	}
	return all
}

// The page about study files names every key and every listed value.
func TestPageIsComplete(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := study.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var root node
	if err := json.Unmarshal(schema, &root); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, w := range append(root.words(), root.Defs["metric"].words()...) {
		seen[w] = true
	}
	if len(seen) < 50 {
		t.Fatalf("the schema has %d words, want at least 50", len(seen))
	}
	for _, w := range slices.Sorted(maps.Keys(seen)) {
		if !strings.Contains(string(text), "`"+w+"`") {
			t.Errorf("%s says nothing about `%s`", page, w)
		}
	}
}

// The studies on the page are without mistakes.
func TestPageExamples(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if !strings.HasPrefix(m[1], "name:") {
			continue
		}
		n++
		if _, err := study.Parse(page, []byte(m[1])); err != nil {
			t.Errorf("example %d: %v", n, err)
		}
		if n > 1 {
			continue
		}
		_, err := study.Parse("json.yaml", []byte(strings.Replace(m[1], "control: standard", "control: standrad", 1)))
		if err == nil || !strings.Contains(string(text), "```\n"+err.Error()+"\n```") {
			t.Errorf("the page does not show this mistake as it is reported: %v", err)
		}
	}
	if n < 2 {
		t.Errorf("found %d examples, want at least 2", n)
	}
}
