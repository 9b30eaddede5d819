package report_test

import (
	"archive/zip"
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/verdict"
)

// browser starts Chromium without any traffic of its own; it ends with the
// test, which is skipped where there is none.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed")
	}
	flags := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.Headless,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WSURLReadTimeout(2 * time.Minute)}
	for _, name := range []string{"disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute) // bounds a hang; the test's own context ends before its cleanup
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, flags...)
	t.Cleanup(stop)
	ctx, _ = chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits for it, so that its folder can go
			t.Errorf("stopping %s: %v", path, err)
		}
	})
	return ctx
}

// do runs an action and ends the test where it fails.
func do[T any](t *testing.T, ctx context.Context, a chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func call[P any](t *testing.T, ctx context.Context, c cdp.Command[P, cdp.Empty], params P) {
	t.Helper()
	if _, err := chromedp.Call(ctx, c, params); err != nil {
		t.Fatalf("%s: %v", c.Method, err)
	}
}

// complaints gathers what a page should not do: write to the console, fail, or
// ask for anything but itself.
type complaints struct {
	mu    sync.Mutex
	all   []string
	self  string
	loads int // of the page itself
}

func (c *complaints) add(format string, args ...any) {
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

func (c *complaints) listen(event any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		c.add("console: %s", e.Type)
	case *runtime.EventExceptionThrown:
		c.add("exception: %v", e.ExceptionDetails)
	case *log.EventEntryAdded:
		c.add("log: %s", e.Entry.Text)
	case *network.EventRequestWillBeSent:
		u, _, _ := strings.Cut(e.Request.URL, "#")
		switch {
		case u == c.self:
			c.loads++
		case !strings.HasPrefix(u, "data:"):
			c.add("request: %s", u)
		}
	}
}

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
}

const look = `(() => ({
	page: document.documentElement.scrollWidth, screen: innerWidth,
	paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
	h1: document.querySelector("h1").innerText,
	boxes: [...document.querySelectorAll("svg[role=img]")].filter(s => s.getBoundingClientRect().width > 100 && s.getBoundingClientRect().height > 15).length,
	small: [...document.querySelectorAll("svg text")].filter(s => parseFloat(getComputedStyle(s).fontSize) < 9).length,
	zoomer: document.querySelectorAll(".zoomer").length,
	out: [...document.querySelectorAll("h1, h2, h3, p, li, dt, dd, td, th, figcaption")].filter(e => !e.closest(".scroll, .zoom, .hidden") &&
		e.getBoundingClientRect().width > 1 && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.innerText.slice(0, 60)),
	tall: [...document.querySelectorAll("tr")].filter(e => e.getBoundingClientRect().height > 400).map(e => e.innerText.slice(0, 60)),
}))()`

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

// shots takes part of looking with one's own eyes, which no check replaces.
var shots = flag.String("shots", "", "folder to write a picture of every report looked at to")

// window is a browser that says what its pages should not have done.
type window struct {
	ctx    context.Context
	opened int // times that a page was
	complaints
}

func newWindow(t *testing.T) *window {
	t.Helper()
	w := &window{ctx: browser(t)}
	if err := chromedp.Listen(w.ctx, w.listen); err != nil {
		t.Fatal(err)
	}
	call(t, w.ctx, network.Enable, network.EnableParams{})
	call(t, w.ctx, log.Enable, cdp.Empty{})
	return w
}

// view is how a page is looked at.
type view struct {
	width   int64
	scheme  string
	scripts bool
}

// open shows a report and checks what holds of each, however looked at.
func (w *window) open(t *testing.T, self, headline string, v view) (s seen) {
	t.Helper()
	w.mu.Lock()
	w.self = self
	w.opened++
	w.mu.Unlock()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}}
	call(t, w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	call(t, w.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: v.width, Height: 800, DeviceScaleFactor: 1, Mobile: v.width < 600})
	call(t, w.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !v.scripts})
	do(t, w.ctx, chromedp.Navigate(self))
	s = do(t, w.ctx, chromedp.Evaluate[seen](look))
	if s.Page > s.Screen || s.Screen != int(v.width) {
		t.Errorf("the page is %d px wide on a screen of %d px", s.Page, s.Screen)
	}
	if fold(s.H1) != fold(headline) {
		t.Errorf("got headline %q, want %q", s.H1, headline)
	}
	if s.Small > 0 || len(s.Out)+len(s.Tall) > 0 {
		t.Errorf("got %d texts too small to read, what leaves the screen: %q, rows too tall: %q", s.Small, s.Out, s.Tall)
	}
	return s
}

// check reports what pages did wrong; it wants to have seen them loaded.
func (w *window) check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loads < w.opened {
		t.Errorf("saw pages loaded %d times, want %d: requests went unseen", w.loads, w.opened)
	}
	for _, text := range w.all {
		t.Error(text)
	}
}

func fileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

func TestHTMLInChromium(t *testing.T) {
	r := large(t, 8)
	profile(r, "net/http", "chi", "gin", "echo", "fiber")
	a := analyse(t, r)
	self := fileURL(writeHTML(t, r, a))
	w := newWindow(t)
	open := func(t *testing.T, v view) seen {
		t.Helper()
		s := w.open(t, self, a.Headline, v)
		if s.Boxes < 50 {
			t.Errorf("got %d drawings, want at least 50", s.Boxes)
		}
		return s
	}
	light := open(t, view{1280, "light", true})
	t.Run("width=360", func(t *testing.T) { open(t, view{360, "light", true}) })
	t.Run("scheme=dark", func(t *testing.T) {
		if dark := open(t, view{1280, "dark", true}); dark.Paper == light.Paper || dark.Ink == light.Ink {
			t.Errorf("the dark page has the colours of the light one: %s on %s", dark.Ink, dark.Paper)
		}
	})
	t.Run("scripts=off", func(t *testing.T) {
		if s := open(t, view{360, "light", false}); s.Zoomer != 0 || light.Zoomer == 0 {
			t.Errorf("got %d zoomers without scripts and %d with, want none and some", s.Zoomer, light.Zoomer)
		}
	})
	t.Run("zoom", func(t *testing.T) {
		open(t, view{360, "light", true})
		width := chromedp.Evaluate[int](`document.querySelector(".zoom svg").clientWidth`)
		before := do(t, w.ctx, width)
		do(t, w.ctx, chromedp.Click(".zoomer button:last-child"))
		after, page := do(t, w.ctx, width), do(t, w.ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth`))
		if after < 2*before-2 || page > 360 {
			t.Errorf("wider: got %d px of %d on a page of %d, want twice as much within 360", after, before, page)
		}
	})
	w.check(t)
}

// TestKeptRunsInChromium looks at real runs, the quick form of a study of each
// kind, since what arms and machines say is not all in a synthetic one.
func TestKeptRunsInChromium(t *testing.T) {
	w := newWindow(t)
	kinds := []struct {
		name  string
		parts string // of the page, all of which must be there to see
	}{
		{"nesting", ".forest .bar, .panel .plot, .chart .plot, .matrix small, #owners-0 .owners td, #owners-0 .causes rect, #claims .claim, #claims .bar, #trust .facts"},
		{"dispatch", ".forest .bar, #code pre, #code b, #claims .claim, #trust .facts"},
		{"tools", ".forest .bar, .matrix small, #trust .warnings, #trust .facts, #repeat code"},
	}
	views := []view{{1280, "light", true}, {1280, "dark", true}, {390, "light", true}}
	for _, k := range kinds {
		t.Run("run="+k.name, func(t *testing.T) {
			r := kept(t, k.name)
			a := analyse(t, r)
			self := fileURL(writeHTML(t, r, a))
			for _, v := range views {
				w.open(t, self, a.Headline, v)
				for _, part := range strings.Split(k.parts, ", ") {
					if !do(t, w.ctx, chromedp.Evaluate[bool](fmt.Sprintf(shows, part))) {
						t.Errorf("%d px, %s: %q is not to be seen", v.width, v.scheme, part)
					}
				}
				picture(t, w.ctx, fmt.Sprintf("%s-%s-%d.png", k.name, v.scheme, v.width))
			}
		})
	}
	w.check(t)
}

// shows says whether the first element that a selector finds has a size.
const shows = `(() => { const e = document.querySelector(%q); const b = e && e.getBoundingClientRect(); return !!b && b.width > 0 && b.height > 0 })()`

// picture keeps what the window shows, where one wants to look.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	if *shots == "" {
		return
	}
	png := do(t, ctx, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(*shots, name), png, 0o666); err != nil {
		t.Fatal(err)
	}
}

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
