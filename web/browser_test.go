package web_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/internal/chromium"
	"github.com/tarehq/tare/web/history/historytest"
)

// seen is what a page looks like.
type seen struct {
	Page   int      `json:"page"` // width of what there is, px
	Screen int      `json:"screen"`
	Paper  string   `json:"paper"`
	H1     string   `json:"h1"`
	Out    []string `json:"out"`    // texts that leave the screen, unless in a matrix, which scrolls
	Pale   []string `json:"pale"`   // texts whose contrast is below 4.5
	Narrow []string `json:"narrow"` // fields and links of the navigation too low for a finger
	Lost   []string `json:"lost"`   // what the keyboard reaches without a visible focus
}

const lookAtPage = `(() => {
	const rgb = c => (c.match(/[\d.]+/g) || []).map(Number);
	const light = c => { const [r, g, b] = rgb(c).map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
	const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor, p = rgb(c); if (p.length === 3 || p[3] > .99) return c; } return "rgb(255, 255, 255)"; };
	const contrast = e => { const a = light(getComputedStyle(e).color), b = light(behind(e)); return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); };
	const shown = e => e.getBoundingClientRect().width > 1 && !e.closest(".hidden, .skip");
	return {
	page: document.documentElement.scrollWidth, screen: innerWidth, paper: getComputedStyle(document.body).backgroundColor,
	h1: document.querySelector("h1").innerText,
	out: [...document.querySelectorAll("div.scroll")].filter(e => e.scrollWidth > e.clientWidth + 1 && !e.querySelector(".matrix")).map(e => "table " + e.getAttribute("aria-label")).concat([...document.querySelectorAll("h1, h2, h3, p, li, dt, dd, td, th, label, figcaption")].filter(e => shown(e) && !e.closest(".scroll, .zoom") && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.innerText.slice(0, 60))),
	pale: [...document.querySelectorAll("h1, h2, p, a, td, th, dt, dd, label, button, select, input, small, summary, figcaption")].filter(e => shown(e) && e.innerText !== "" && contrast(e) < 4.5).map(e => e.tagName + " " + e.innerText.slice(0, 40)),
	narrow: [...document.querySelectorAll(".filter select, .filter input, .filter button, .site a")].filter(e => e.getBoundingClientRect().height < 32).map(e => e.innerText),
	lost: [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']")].filter(e => {
		const before = getComputedStyle(e).outlineStyle;
		e.focus();
		const look = getComputedStyle(e), box = e.getBoundingClientRect();
		return document.activeElement === e && (look.outlineStyle === "none" || parseFloat(look.outlineWidth) < 1 || before !== "none" || box.right < 1 || box.width < 1);
	}).map(e => e.tagName + " " + e.innerText.slice(0, 40)),
}; })()`

// TestInChromium opens the pages on a screen, on a phone and in the dark.
func TestInChromium(t *testing.T) {
	w := chromium.New(t)
	root := t.TempDir()
	makeHistory(t, root)
	a := historytest.Write(t, root, historytest.Run{Study: "owners", Day: 40, Profiled: 50_000})
	b := historytest.Write(t, root, historytest.Run{Study: "owners", Day: 41, Profiled: 80_000})
	const word = "a-name-that-needs-more-than-one-line-on-a-telephone"
	long := historytest.Write(t, root, historytest.Run{Study: word, Day: 42, Title: strings.Repeat(word, 3), Arms: []string{word + "-1", strings.Repeat("W", 60)}})
	live := historytest.Write(t, root, historytest.Run{Study: word, Day: 43, Unended: true, Blocks: 3})
	s := serve(t, root)
	pair := url.Values{"a": {a}, "b": {b}}.Encode()
	views := []chromium.View{{Width: 1280, Scheme: "light", Scripts: true}, {Width: 1280, Scheme: "dark", Scripts: true}, {Width: 360, Scheme: "light", Scripts: false}, {Width: 768, Scheme: "dark", Scripts: true}}
	for name, path := range map[string]string{"runs": "/", "study": "/studies/release", "compare": "/compare?" + pair, "run": "/runs/" + a, "leaderboard": "/leaderboard", "claims": "/claims",
		"long": "/runs/" + long, "long-study": "/studies/" + word, "live": "/runs/" + live + "/live", "studies": "/studies", "none": "/?q=no+such+run"} {
		papers := map[string]bool{}
		for _, v := range views {
			w.OpenSite(t, s.URL, path, v)
			look := chromium.Evaluate[seen](t, w, lookAtPage)
			papers[look.Paper] = true
			if look.Page > look.Screen || look.Screen != int(v.Width) || look.H1 == "" || len(look.Out)+len(look.Pale)+len(look.Narrow)+len(look.Lost) > 0 {
				t.Errorf("%s at %d px, %s: got %+v, want all of it within the screen and readable", name, v.Width, v.Scheme, look)
			}
			w.Picture(t, fmt.Sprintf("web-%s-%s-%d.png", name, v.Scheme, v.Width))
		}
		if len(papers) != 2 {
			t.Errorf("%s: the papers are %v, want a light and a dark one", name, papers)
		}
	}
	w.Check(t)
}

// TestPictures makes the pictures of docs/web.md, where -shots ../docs asks for them, and bounds
// those that are there.
func TestPictures(t *testing.T) {
	const most = 150 << 10 // bytes of each
	w := chromium.New(t)
	root := t.TempDir()
	for day := range 12 {
		factor := 1.2
		if day >= 7 {
			factor = 1.26
		}
		historytest.Write(t, root, historytest.Run{Study: "orders", Title: "Orders of the shop", Day: 60 + day, Factor: factor, Commit: fmt.Sprintf("a5ff7a%d", 10+day), Arms: []string{"api", "cached"}, Floor: 0.01})
	}
	s := serve(t, root)
	for name, v := range map[string]chromium.View{"light": {Width: 960, Scheme: "light", Scripts: true}, "dark": {Width: 960, Scheme: "dark", Scripts: true}, "phone": {Width: 360, Height: 1000, Scheme: "light", Scripts: true}} {
		w.OpenSite(t, s.URL, "/studies/orders?arm=api", v)
		w.Screen(t, "web-"+name+".png")
		if file, err := os.Stat("../docs/web-" + name + ".png"); err != nil || file.Size() > most {
			t.Errorf("the picture of docs/web.md: %v, want at most %d bytes", err, most)
		}
	}
	w.Check(t)
}

// TestZoomInChromium widens the chart of a study, which is whole without scripts.
func TestZoomInChromium(t *testing.T) {
	w := chromium.New(t)
	root := t.TempDir()
	makeHistory(t, root)
	s := serve(t, root)
	open := func(scripts bool) (zoomers int) {
		w.OpenSite(t, s.URL, "/studies/release", chromium.View{Width: 360, Scheme: "light", Scripts: scripts})
		return chromium.Evaluate[int](t, w, `document.querySelectorAll(".zoomer").length`)
	}
	width := func() int { return chromium.Evaluate[int](t, w, `document.querySelector(".zoom svg").clientWidth`) }
	without := open(false)
	whole := width()
	if with := open(true); without != 0 || with != 1 {
		t.Errorf("got %d zoomers without scripts and %d with, want none and one", without, with)
	}
	before := width()
	w.Click(t, ".zoomer button:last-child")
	after, page := width(), chromium.Evaluate[int](t, w, `document.documentElement.scrollWidth`)
	if before != whole || after < 2*before-2 || page > 360 {
		t.Errorf("got %d px without scripts, %d with, %d wider, on a page of %d; want the same, then twice as much within 360", whole, before, after, page)
	}
	w.Check(t)
}

// TestLiveInChromium sees a trial appear without loading the page again.
func TestLiveInChromium(t *testing.T) {
	w := chromium.New(t)
	root := t.TempDir()
	name := historytest.Write(t, root, historytest.Run{Unended: true, Blocks: 3})
	s := serve(t, root)
	w.OpenSite(t, s.URL, "/runs/"+name+"/live", chromium.View{Width: 1280, Scheme: "light", Scripts: true})
	await := func(want string) {
		t.Helper()
		text := ""
		for range 200 {
			if text = chromium.Evaluate[string](t, w, `document.getElementById("content").innerText`); strings.Contains(text, want) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("want %q in:\n%s", want, text)
	}
	await("6, 6 of them valid")
	historytest.Append(t, filepath.Join(root, name), 3)
	await("8, 8 of them valid")
	historytest.End(t, filepath.Join(root, name))
	await("The run ended: decided.")
	w.Check(t)
}
