package tare_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Bounds on help texts and messages, as [mostWords] and [mostCommas] are on pages.
var textBounds = map[string]struct {
	words  int // of nine sentences in ten
	commas float64
}{
	"help":    {words: 22, commas: 0.8},
	"message": {words: 18, commas: 0.5},
}

// stilted are words that have a plainer form: "is not a", "reports", "excludes", "warns",
// "ignores", "allows", "continues".
var stilted = regexp.MustCompile(`\b(is|are) no [a-z]+ of\b|\bis no [a-z]+$|\btells?\b|\btold\b|\bleaves? out\b|\bleft out\b|\blets?\b|\bgo(es)? on with\b|\b(,|for|asks?) so (many|much)\b|\bbesides\b`)

// markup marks literals that are not prose: HTML, CSS, scripts, queries.
var markup = regexp.MustCompile(`[<{;]\s*\n|</|^<|\$\(|^\s*\{|=%`)

// userText is a text of the code that a user reads, and where it stands.
type userText struct{ kind, place, text string }

// TestUserTexts prints and bounds the words and commas of sentences in help texts and
// messages, and finds stilted words: go test -run TestUserTexts -v .
func TestUserTexts(t *testing.T) {
	byKind := map[string][]userText{}
	for _, dir := range []string{"cmd", "cost", "kube", "lab", "load", "stats", "web"} {
		for _, text := range readTexts(t, dir) {
			byKind[text.kind] = append(byKind[text.kind], text)
		}
	}
	for kind, most := range textBounds {
		var all []int
		commas := 0
		for _, text := range byKind[kind] {
			if word := stilted.FindString(text.text); word != "" {
				t.Errorf("%s: write %q in other words: %q", text.place, word, text.text)
			}
			lengths, n := measureProse(text.text)
			all, commas = append(all, lengths...), commas+n
		}
		if len(all) < 200 {
			t.Fatalf("found %d sentences of kind %s, want 200 or more: are they still found?", len(all), kind)
		}
		share := float64(commas) / float64(len(all))
		slices.Sort(all)
		t.Logf("%-8s %4d sentences, half of at most %d words, nine in ten of at most %d, %.2f commas a sentence", kind, len(all), all[len(all)/2], ninth(all), share)
		if ninth(all) > most.words || share > most.commas {
			t.Errorf("%s: nine sentences in ten have at most %d words and there are %.2f commas a sentence; want %d and %.1f: break the longest ones", kind, ninth(all), share, most.words, most.commas)
		}
	}
}

// readTexts collects what users read in the Go files below a folder.
func readTexts(t *testing.T, root string) []userText {
	t.Helper()
	var texts []userText
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		add := func(kind string, n ast.Node, text string) {
			if text != "" {
				texts = append(texts, userText{kind, fset.Position(n.Pos()).String(), text})
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag != nil {
					tag, _ := strconv.Unquote(n.Tag.Value)
					add("help", n, reflect.StructTag(tag).Get("help"))
					return false
				}
			case *ast.FuncDecl:
				if n.Name.Name == "Help" && n.Recv != nil {
					add("help", n, literals(n.Body))
					return false
				}
			case *ast.BasicLit:
				if text := literals(n); n.Kind == token.STRING && len(strings.Fields(text)) > 3 && !markup.MatchString(text) {
					add("message", n, text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// literals are the string literals below a node, joined.
func literals(n ast.Node) string {
	var all []string
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value)
			all = append(all, text)
		}
		return true
	})
	return strings.Join(all, "")
}
