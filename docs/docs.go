// Package docs holds this folder's pages as topics, so that an installed program can show them.
package docs

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Repository is where the files are that a page links to and an installed program lacks.
const Repository = "https://github.com/tarehq/tare/blob/main/"

// Index is the topic that leads to the others. Its page is README.md.
const Index = "topics"

//go:embed *.md
var pages embed.FS

// Topics are the names of the pages, in order. The index is the last.
func Topics() []string {
	files, err := fs.Glob(pages, "*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var names []string
	for _, file := range files {
		if file != "README.md" {
			names = append(names, strings.TrimSuffix(file, ".md"))
		}
	}
	return append(names, Index)
}

// IsTopic reports whether a name is a topic.
func IsTopic(name string) bool { return slices.Contains(Topics(), name) }

// Page is a topic's page in Markdown; "" if there is none.
func Page(topic string) string {
	if topic == Index {
		topic = "README"
	}
	text, err := pages.ReadFile(topic + ".md")
	if err != nil {
		return ""
	}
	return string(text)
}

// Resolve returns the topic that a link of a page leads to, or else its address on the web.
// A link within its own page leads to neither.
func Resolve(link string) (topic, address string) {
	file, _, _ := strings.Cut(link, "#")
	name := strings.TrimSuffix(file, ".md")
	switch {
	case file == "":
		return "", ""
	case strings.Contains(file, "://"):
		return "", link
	case file == "README.md":
		return Index, ""
	case name != file && IsTopic(name):
		return name, ""
	}
	return "", Repository + path.Join("docs", link)
}
