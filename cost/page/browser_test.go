package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/internal/chromium"
)

// graph is what the first flame graph of a page looks like.
type graph struct {
	Shown   int      `json:"shown"` // boxes that are drawn
	Lit     int      `json:"lit"`   // of all boxes, those that are not dimmed
	Widest  []string `json:"widest"`
	Whole   bool     `json:"whole"` // whether all can be shown again
	Found   string   `json:"found"`
	Invalid bool     `json:"invalid"`
	Pressed []string `json:"pressed"` // owners chosen in the table
	Finding bool     `json:"finding"` // whether one can type what to find
	Page    int      `json:"page"`    // width of what there is, px
}

const look = `(() => {
	const boxes = [...document.querySelector(".flame").querySelectorAll(".b")], find = document.querySelector(".find");
	const drawn = boxes.filter((g) => g.style.display !== "none");
	return {
		shown: drawn.length, lit: boxes.filter((g) => !g.classList.contains("dim")).length,
		widest: drawn.filter((g) => g.querySelector("rect").getAttribute("width") > 999).map((g) => g.querySelector("title").textContent.split(/[,:] /)[0]),
		whole: !document.querySelector(".whole").hidden, found: document.querySelector(".found").textContent,
		invalid: find.getAttribute("aria-invalid") === "true", finding: document.activeElement === find,
		pressed: [...document.querySelectorAll(".dot[aria-pressed=true]")].map((d) => d.dataset.owner),
		page: document.documentElement.scrollWidth,
	};
})()`

// window is a page in a browser, with what a reader does to its first graph.
type window struct {
	*chromium.Window
	t *testing.T
}

func (w window) look() graph { return chromium.Evaluate[graph](w.t, w.Window, look) }

func (w window) find(text string) graph {
	w.t.Helper()
	chromium.Evaluate[bool](w.t, w.Window, fmt.Sprintf(`(() => {
		const find = document.querySelector(".find");
		find.value = %q;
		return find.dispatchEvent(new Event("input"));
	})()`, text))
	return w.look()
}

func (w window) press(key string) graph {
	w.t.Helper()
	chromium.Evaluate[bool](w.t, w.Window, fmt.Sprintf(`document.querySelector(".flame").dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`, key))
	return w.look()
}

func (w window) click(selector string) graph {
	w.t.Helper()
	hit := chromium.Evaluate[bool](w.t, w.Window, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({block: "center", inline: "center"});
		const b = e.getBoundingClientRect(), at = document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2);
		return !!at && at.dispatchEvent(new MouseEvent("click", {bubbles: true}));
	})()`, selector))
	if !hit {
		w.t.Errorf("%s cannot be clicked on", selector)
	}
	return w.look()
}

// show writes a page and opens it.
func show(t *testing.T, w *chromium.Window, v chromium.View, content []byte) window {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Open(t, file, v)
	return window{w, t}
}

// TestGraphInChromium does to the flame graph what its note says can be done: zoom
// and show all again, find, choose an owner in the table, go by the keyboard.
func TestGraphInChromium(t *testing.T) {
	all := graph{Shown: 7, Lit: 7, Widest: []string{"all"}}
	same := func(g, want graph) bool {
		return g.Shown == want.Shown && g.Lit == want.Lit && g.Whole == want.Whole && g.Found == want.Found && g.Invalid == want.Invalid &&
			slices.Equal(g.Widest, want.Widest) && slices.Equal(g.Pressed, want.Pressed)
	}
	w := chromium.New(t)
	content := []byte(write(t))
	for _, v := range []chromium.View{{Width: 1280, Scheme: "light", Scripts: true}, {Width: 390, Scheme: "dark", Scripts: true}} {
		t.Run(fmt.Sprint("width=", v.Width), func(t *testing.T) {
			w := show(t, w, v, content)
			first := w.look()
			if !same(first, all) || first.Page > int(v.Width) {
				t.Fatalf("at first: got %+v, want %+v, within %d px", first, all, v.Width)
			}
			const serve, finish = `.flame .b[data-d="1"] rect`, `.dot[data-owner="net/http: finish answer"]`
			for _, step := range []struct {
				name string
				do   func() graph
				want graph
			}{
				{"click", func() graph { return w.click(serve) }, graph{Shown: 6, Lit: 7, Whole: true, Widest: []string{"all", "net/http.(*conn).serve"}, Found: "net/http.(*conn).serve"}},
				{"click again", func() graph { return w.click(serve) }, graph{Shown: 7, Lit: 7, Widest: []string{"all"}, Found: "net/http.(*conn).serve"}},
				{"find", func() graph { return w.find("syscall6|finish") }, graph{Shown: 7, Lit: 2, Widest: []string{"all"}, Found: "2 boxes, 30.0 % of all"}},
				{"find what is wrong", func() graph { return w.find("(") }, graph{Shown: 7, Lit: 2, Widest: []string{"all"}, Found: "no regular expression", Invalid: true}},
				{"find nothing", func() graph { return w.find("") }, all},
				{"choose an owner", func() graph { return w.click(finish) }, graph{Shown: 7, Lit: 2, Widest: []string{"all"}, Found: "2 boxes, 30.0 % of all", Pressed: []string{"net/http: finish answer"}}},
				{"choose it no more", func() graph { return w.click(finish) }, all},
			} {
				g := step.do()
				if i := len(step.want.Found); i > 0 && len(g.Found) > i { // of a title, the function
					g.Found = g.Found[:i]
				}
				if !same(g, step.want) {
					t.Errorf("%s: got %+v, want %+v", step.name, g, step.want)
				}
			}
			w.press("Escape")
			w.press("ArrowUp") // from the box that was clicked on
			if g := w.press("Enter"); !g.Whole || g.Shown != 4 || !strings.HasPrefix(g.Found, "net/http.HandlerFunc.ServeHTTP") {
				t.Errorf("arrow up and Enter: got %+v, want the widest of its callees in full width", g)
			}
			if g := w.press("Escape"); !same(g, all) {
				t.Errorf("Escape: got %+v, want %+v", g, all)
			}
			if g := w.press("/"); !g.Finding {
				t.Errorf("/: got %+v, want to type what to find", g)
			}
			w.Picture(t, fmt.Sprintf("cost-%s-%d.png", v.Scheme, v.Width))
		})
	}
	t.Run("scripts=off", func(t *testing.T) {
		w := show(t, w, chromium.View{Width: 1280, Scheme: "light"}, content)
		if g := w.look(); !same(g, all) {
			t.Errorf("got %+v, want %+v", g, all)
		}
	})
	w.Check(t)
}

// TestDiffInChromium finds a function in the graph of a comparison.
func TestDiffInChromium(t *testing.T) {
	w := chromium.New(t)
	content := []byte(writeDiff(t, 200, 400))
	for _, v := range []chromium.View{{Width: 1280, Scheme: "light", Scripts: true}, {Width: 390, Scheme: "dark", Scripts: true}} {
		w := show(t, w, v, content)
		first := w.look()
		if first.Shown == 0 || first.Lit != first.Shown || first.Page > int(v.Width) {
			t.Errorf("at first: got %+v, want boxes, all lit, within %d px", first, v.Width)
		}
		if g := w.find("readRequest"); g.Shown != first.Shown || g.Lit != 1 || !strings.HasPrefix(g.Found, "1 box, ") {
			t.Errorf("find: got %+v, want one of %d boxes", g, first.Shown)
		}
		w.Picture(t, fmt.Sprintf("diff-%s-%d.png", v.Scheme, v.Width))
	}
	w.Check(t)
}
