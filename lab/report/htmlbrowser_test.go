package report_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/internal/chromium"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/verdict"
)

// seen is what a page looks like.
type seen struct {
	Page   int      `json:"page"` // width of what there is, px
	Screen int      `json:"screen"`
	Paper  string   `json:"paper"`
	Ink    string   `json:"ink"`
	H1     string   `json:"h1"`
	Boxes  int      `json:"boxes"` // drawings that have a size
	Small  int      `json:"small"` // texts of a drawing below 9 px
	Zoomer int      `json:"zoomer"`
	Out    []string `json:"out"`  // texts that leave the screen and cannot be scrolled to
	Tall   []string `json:"tall"` // rows of which a phone shows no end
	Cut    []string `json:"cut"`  // labels above what can be zoomed, which hides them
}

const look = `(() => { document.querySelectorAll("details").forEach(d => d.open = true); return {
	page: document.documentElement.scrollWidth, screen: innerWidth,
	paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
	h1: document.querySelector("h1").innerText,
	boxes: [...document.querySelectorAll("svg[role=img]")].filter(s => s.getBoundingClientRect().width > 100 && s.getBoundingClientRect().height > 15).length,
	small: [...document.querySelectorAll("svg text")].filter(s => parseFloat(getComputedStyle(s).fontSize) < 9).length,
	zoomer: document.querySelectorAll(".zoomer").length,
	out: [...document.querySelectorAll("h1, h2, h3, p, li, dt, dd, td, th, figcaption")].filter(e => !e.closest(".scroll, .zoom, .hidden") &&
		e.getBoundingClientRect().width > 1 && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.innerText.slice(0, 60)),
	tall: [...document.querySelectorAll("tbody tr")].filter(e => e.getBoundingClientRect().height > 400).map(e => e.innerText.slice(0, 60)),
	cut: [...document.querySelectorAll(".zoom text")].filter(e => e.getBoundingClientRect().top < e.closest(".zoom").getBoundingClientRect().top).map(e => e.textContent),
} })()`

func writeHTML(t *testing.T, r *record.Run, a *verdict.Analysis) (path string) {
	t.Helper()
	var b bytes.Buffer
	if err := report.HTML(&b, r, a); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// open shows a report and checks what holds of each, however looked at.
func open(t *testing.T, w *chromium.Window, file, headline string, v chromium.View) seen {
	t.Helper()
	w.Open(t, file, v)
	s := chromium.Evaluate[seen](t, w, look)
	if s.Page > s.Screen || s.Screen != int(v.Width) {
		t.Errorf("the page is %d px wide on a screen of %d px", s.Page, s.Screen)
	}
	if fold(s.H1) != fold(headline) {
		t.Errorf("got headline %q, want %q", s.H1, headline)
	}
	if s.Small > 0 || len(s.Out)+len(s.Tall)+len(s.Cut) > 0 {
		t.Errorf("got %d texts too small to read, what leaves the screen: %q, rows too tall: %q, labels cut: %q", s.Small, s.Out, s.Tall, s.Cut)
	}
	return s
}

func TestHTMLInChromium(t *testing.T) {
	r := large(t, 8)
	profile(r, "net/http", "chi", "gin", "echo", "fiber")
	a := analyse(t, r)
	file := writeHTML(t, r, a)
	w := chromium.New(t)
	open := func(t *testing.T, v chromium.View) seen {
		t.Helper()
		s := open(t, w, file, a.Headline, v)
		if s.Boxes < 50 {
			t.Errorf("got %d drawings, want at least 50", s.Boxes)
		}
		return s
	}
	light := open(t, chromium.View{Width: 1280, Scheme: "light", Scripts: true})
	t.Run("width=360", func(t *testing.T) { open(t, chromium.View{Width: 360, Scheme: "light", Scripts: true}) })
	t.Run("scheme=dark", func(t *testing.T) {
		if dark := open(t, chromium.View{Width: 1280, Scheme: "dark", Scripts: true}); dark.Paper == light.Paper || dark.Ink == light.Ink {
			t.Errorf("the dark page has the colours of the light one: %s on %s", dark.Ink, dark.Paper)
		}
	})
	t.Run("scripts=off", func(t *testing.T) {
		if s := open(t, chromium.View{Width: 360, Scheme: "light", Scripts: false}); s.Zoomer != 0 || light.Zoomer == 0 {
			t.Errorf("got %d zoomers without scripts and %d with, want none and some", s.Zoomer, light.Zoomer)
		}
	})
	t.Run("zoom", func(t *testing.T) {
		open(t, chromium.View{Width: 360, Scheme: "light", Scripts: true})
		width := func() int { return chromium.Evaluate[int](t, w, `document.querySelector(".zoom svg").clientWidth`) }
		before := width()
		w.Click(t, ".zoomer button:last-child")
		after, page := width(), chromium.Evaluate[int](t, w, `document.documentElement.scrollWidth`)
		if after < 2*before-2 || page > 360 {
			t.Errorf("wider: got %d px of %d on a page of %d, want twice as much within 360", after, before, page)
		}
	})
	w.Check(t)
}

// TestKeptRunsInChromium looks at real runs, the quick form of a study of each
// kind, since what arms and machines say is not all in a synthetic one.
func TestKeptRunsInChromium(t *testing.T) {
	w := chromium.New(t)
	kinds := []struct {
		name  string
		parts string // of the page, all of which must be there to see
	}{
		{"nesting", ".records .bar, .panel .plot, .chart .plot, .matrix small, #owners-0 .matrix td, #owners-0 .stack rect, #claims h3, #claims .bar, #trust .terms"},
		{"dispatch", ".records .bar, #code pre, #claims h3, #trust .terms"},
		{"tools", ".records .bar, .matrix small, #trust .warning, #trust .terms, #repeat + pre"},
	}
	views := []chromium.View{{Width: 1280, Scheme: "light", Scripts: true}, {Width: 1280, Scheme: "dark", Scripts: true}, {Width: 390, Scheme: "light", Scripts: true}}
	for _, k := range kinds {
		t.Run("run="+k.name, func(t *testing.T) {
			r := kept(t, k.name)
			a := analyse(t, r)
			file := writeHTML(t, r, a)
			for _, v := range views {
				open(t, w, file, a.Headline, v)
				for _, part := range strings.Split(k.parts, ", ") {
					if !chromium.Evaluate[bool](t, w, fmt.Sprintf(shows, part)) {
						t.Errorf("%d px, %s: %q is not to be seen", v.Width, v.Scheme, part)
					}
				}
				w.Picture(t, fmt.Sprintf("%s-%s-%d.png", k.name, v.Scheme, v.Width))
			}
		})
	}
	w.Check(t)
}

// shows reports whether the first element that a selector finds has a size.
const shows = `(() => { const e = document.querySelector(%q); const b = e && e.getBoundingClientRect(); return !!b && b.width > 0 && b.height > 0 })()`

// kept is a run of testdata/runs. They are real ones, without their raw profiles,
// most histograms, and what else the machine ran.
func kept(t *testing.T, name string) *record.Run {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join("testdata", "runs", name+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
