package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tarehq/tare/docs"
)

func Example() {
	title, _, _ := strings.Cut(docs.Page("glossary"), "\n")
	fmt.Println(docs.IsTopic("glossary"), title)
	topic, _ := docs.Resolve("load.md#thresholds")
	_, address := docs.Resolve("../action.yml")
	fmt.Println(topic, address)
	// Output:
	// true # Glossary
	// load https://github.com/tarehq/tare/blob/main/action.yml
}

func TestResolve(t *testing.T) {
	for link, want := range map[string][2]string{
		"#trial":                   {},
		"README.md":                {docs.Index, ""},
		"README.md#x":              {docs.Index, ""},
		"json.md":                  {"json", ""},
		"none.md":                  {"", docs.Repository + "docs/none.md"},
		"json":                     {"", docs.Repository + "docs/json"},
		"../studies":               {"", docs.Repository + "studies"},
		"https://go.dev/doc#x":     {"", "https://go.dev/doc#x"},
		"../serve/proxy/doc.go#L3": {"", docs.Repository + "serve/proxy/doc.go#L3"},
	} {
		if topic, address := docs.Resolve(link); topic != want[0] || address != want[1] {
			t.Errorf("%s: got %q and %q, want %q and %q", link, topic, address, want[0], want[1])
		}
	}
}
