package record_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
)

// fields are the names that a type has in JSON, with those of what it holds.
func fields(of reflect.Type, into map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		fields(of.Elem(), into)
	case reflect.Struct:
		if of == reflect.TypeFor[time.Time]() {
			return
		}
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			if name != "" {
				into[name] = true
			}
			fields(f.Type, into)
		}
	}
}

// Every field of a run's files is told by their page, by that of study files whose keys
// the manifest repeats, or by that of tare cost, whose bills captures hold.
func TestPagesAreComplete(t *testing.T) {
	told := map[string]bool{}
	for _, page := range []string{"run-folder.md", "study-files.md", "cost.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllSubmatch(text, -1) {
			told[string(m[1])] = true
		}
	}
	names := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[record.Manifest](), reflect.TypeFor[record.Trial](), reflect.TypeFor[record.Capture]()} {
		fields(of, names)
	}
	if len(names) < 100 {
		t.Fatalf("found %d fields, want at least 100: are they still found?", len(names))
	}
	for name := range names {
		if !told[name] {
			t.Errorf("no page tells the field `%s`", name)
		}
	}
}
