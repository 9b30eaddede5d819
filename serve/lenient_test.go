package serve_test

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/tarehq/tare/serve"
)

// The fields of Lenient are those of a type that go doc does not show: its comment names
// each, and docs/strictness.md says what it lets in.
func TestLenientIsTold(t *testing.T) {
	for _, file := range []string{"server.go", "../docs/strictness.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for f := range reflect.TypeFor[serve.Lenient]().Fields() {
			if !regexp.MustCompile(`\b` + f.Name + `\b`).Match(text) {
				t.Errorf("%s does not name %s", file, f.Name)
			}
		}
	}
}
