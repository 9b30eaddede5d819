package helpverb

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/docs"

	"github.com/alecthomas/kong"
)

// printTopic is what the verb prints of a topic.
func printTopic(t *testing.T, topic string) (string, error) {
	t.Helper()
	parsed := &kong.Context{Kong: &kong.Kong{Model: &kong.Application{Node: &kong.Node{Children: []*kong.Node{{Name: "selftest"}}}}}}
	var out bytes.Buffer
	err := (&Command{Topic: topic}).Run(&cli.Terminal{Out: &out, Width: 80}, parsed)
	return out.String(), err
}

// TestTopics prints every topic within 80 columns. Code keeps its lines, and an address is
// not broken.
func TestTopics(t *testing.T) {
	for _, topic := range docs.Topics() {
		text, err := printTopic(t, topic)
		if err != nil {
			t.Errorf("%s: %v", topic, err)
		}
		if n := strings.Count(text, "\n"); n < 20 {
			t.Errorf("%s: got %d lines, want at least 20:\n%s", topic, n, text)
		}
		if found := regexp.MustCompile(`\]\([a-z-]+\.md|(?m)^- :`).FindString(text); found != "" {
			t.Errorf("%s: the text has %q", topic, found)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if doc.Width(line) > 80 && !strings.HasPrefix(line, "    ") && strings.Contains(strings.TrimLeft(line, "- "), " ") {
				t.Errorf("%s: a line has more than 80 columns: %q", topic, line)
			}
		}
	}
}

func TestUnknownTopic(t *testing.T) {
	for topic, want := range map[string]string{
		"study-file": "did you mean study-files? `tare help topics` lists the topics",
		"selftset":   "did you mean selftest? `tare help topics` lists the topics",
		"xxxxxxxxxx": "`tare help topics` lists the topics",
		"":           "`tare help topics` lists the topics",
	} {
		_, err := printTopic(t, topic)
		var f *cli.Failure
		if !errors.As(err, &f) || f.Status != cli.ExitUsage || f.Hint != want {
			t.Errorf("%q: got %v with hint %q, want wrong usage with %q", topic, err, f.Hint, want)
		}
	}
}

func TestReadPage(t *testing.T) {
	markdown := "# A *title*\n\nSee [json.md](json.md), [the arm](arm.md#serve) ([method](method.md)),\n[below](#x), [a file](../studies/a.yaml) and [all](README.md). A\\_b **is** `a | b`.\n\n" +
		"- one\n  more\n- two\n\n```yaml\na: 1\n```\n\n| key | meaning | default |\n|---|---|---|\n| `a` | " + strings.Repeat("long ", 20) + "| 1 |\n| | x \\| y | |\n"
	const want = `A title

See ` + "`tare help json`, the arm (`tare help arm`) (method: `tare help method`)," + `
below, a file (https://github.com/tarehq/tare/blob/main/studies/a.yaml) and all
(` + "`tare help topics`). A_b is `a | b`" + `.

- one more
- two

    a: 1

  key  meaning                                                           default
  a    long long long long long long long long long long long long long  1
       long long long long long long long

       x | y
`
	var out bytes.Buffer
	if err := doc.Text(&out, readPage(markdown), doc.TextOptions{Width: 80}); err != nil || out.String() != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, &out, want)
	}
}

var (
	address   = regexp.MustCompile(`https://\S+`)
	namesPage = regexp.MustCompile(`docs/[a-z-]+\.md`)
	namesHelp = regexp.MustCompile(`tare help ([a-z][a-z-]*)`)
)

// TestHints has no text of the program name a file that only a clone has, and each topic
// that one names be there.
func TestHints(t *testing.T) {
	hints := 0
	for _, dir := range []string{"cmd", "cost", "doc", "lab", "load", "stats", "studies"} {
		err := filepath.WalkDir(filepath.Join("../../../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "testdata" {
				return fs.SkipDir
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, _ := strconv.Unquote(lit.Value)
				if page := namesPage.FindString(address.ReplaceAllString(text, "")); page != "" {
					t.Errorf("%s: %q names %s, which an installed tare lacks: name a topic of tare help", path, text, page)
				}
				for _, m := range namesHelp.FindAllStringSubmatch(text, -1) {
					if hints++; !docs.IsTopic(m[1]) {
						t.Errorf("%s: %q names the topic %s, which is not there", path, text, m[1])
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if hints < 10 {
		t.Errorf("found %d hints that name a topic, want at least 10: are they still found?", hints)
	}
}
