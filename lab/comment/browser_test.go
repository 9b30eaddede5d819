package comment_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/tarehq/tare/internal/chromium"
	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/verdict"
)

var files = flag.String("comments", "", "comments to look at besides, files separated by commas")

// forgeStyle is as wide and as large as a comment on GitHub, whose tables scroll by themselves.
const forgeStyle = `body { margin: 16px; font: 14px/1.5 sans-serif; max-width: 860px; overflow-wrap: break-word }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse; margin-bottom: 16px }
th, td { border: 1px solid #d1d9e0; padding: 6px 13px } tr:nth-child(2n) { background: #f6f8fa }
code { background: #818b981f; padding: .2em .4em; font-size: 85%; white-space: break-spaces } blockquote { border-left: .25em solid #d1d9e0; margin: 0; padding: 0 1em }`

// rendered is what a comment looks like.
type rendered struct {
	Heading string `json:"heading"`
	Tables  int    `json:"tables"` // outside of the fold
	Wide    int    `json:"wide"`   // of these, those that must be scrolled
	Raw     string `json:"raw"`    // Markdown that came out as text
	Page    int    `json:"page"`   // px
}

const lookAtComment = `(() => {
	const outside = e => !e.closest("details");
	const shown = [...document.body.children].filter(outside).map(e => e.innerText).join("\n");
	return {
		heading: document.querySelector("h3").innerText,
		tables: [...document.querySelectorAll("table")].filter(outside).length,
		wide: [...document.querySelectorAll("table")].filter(e => outside(e) && e.scrollWidth > e.clientWidth + 1).length,
		raw: (shown.match(/^ *\|.*|\*\*.*|<[a-z!\/][^>]*>|^#+ .*/m) || [""])[0],
		page: document.documentElement.scrollWidth,
	} })()`

// TestInChromium renders comments as a forge does: tables and headings come out as such, what is
// outside of the fold fits the column, and nothing is asked of the network.
func TestInChromium(t *testing.T) {
	long := changed("api", 3)
	long.CPU.Owners[0].Owner = "github.com/example/a-shop-of-some-size/internal/middleware/auditing.(*handlerOfRequests).ServeHTTP"
	all := map[string]string{}
	for name, s := range map[string]comment.Source{
		"failed": {Analysis: analyse(t, 1.11), Changes: []comment.Change{long}, Command: []string{"tare", "gate", "--max", "cpu_per_request<=5%", "release.yaml"}},
		"passed": {Analysis: analyse(t, 1), Changes: []comment.Change{changed("api", 0)}},
		"many":   {Analysis: analyse(t, 1.2, 1, 1.05), Changes: []comment.Change{changed("api", 2)}},
	} {
		s.Gates = s.Analysis.Gate([]verdict.Budget{{Metric: "cpu_per_request", Harm: 0.05}})
		all[name] = markdown(t, s)
	}
	for path := range strings.SplitSeq(*files, ",") {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".md")] = string(text)
	}
	w := chromium.New(t)
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			page := filepath.Join(t.TempDir(), "comment.html")
			if err := os.WriteFile(page, render(t, text), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, width := range []int64{900, 400} {
				w.Open(t, page, chromium.View{Width: width, Scheme: "light"})
				got := chromium.Evaluate[rendered](t, w, lookAtComment)
				if got.Heading == "" || got.Raw != "" || got.Page > int(width) {
					t.Errorf("%d px: %+v, want a heading, no Markdown in the text, and nothing beyond the screen", width, got)
				}
				if width == 900 && got.Wide > 0 {
					t.Errorf("%d of %d tables are wider than a comment", got.Wide, got.Tables)
				}
				w.Picture(t, fmt.Sprintf("comment-%s-%d.png", name, width))
			}
		})
	}
	w.Check(t)
}

// render is the page of a comment.
func render(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'><title>comment</title><style>" + forgeStyle + "</style>\n")
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe())).Convert([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
