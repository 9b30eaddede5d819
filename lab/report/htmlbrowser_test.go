package report_test

import (
	"bytes"
	"context"
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
	Page   int    `json:"page"` // width of what there is, px
	Screen int    `json:"screen"`
	Paper  string `json:"paper"`
	Ink    string `json:"ink"`
	H1     string `json:"h1"`
	Boxes  int    `json:"boxes"` // drawings that have a size
	Small  int    `json:"small"` // texts of a drawing below 9 px
	Zoomer int    `json:"zoomer"`
}

const look = `(() => ({
	page: document.documentElement.scrollWidth, screen: innerWidth,
	paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
	h1: document.querySelector("h1").innerText,
	boxes: [...document.querySelectorAll("svg[role=img]")].filter(s => s.getBoundingClientRect().width > 100 && s.getBoundingClientRect().height > 15).length,
	small: [...document.querySelectorAll("svg text")].filter(s => parseFloat(getComputedStyle(s).fontSize) < 9).length,
	zoomer: document.querySelectorAll(".zoomer").length,
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

func TestHTMLInChromium(t *testing.T) {
	r := large(t, 8)
	profile(r, "net/http", "chi", "gin", "echo", "fiber")
	a := analyse(t, r)
	self := (&url.URL{Scheme: "file", Path: writeHTML(t, r, a)}).String()
	ctx := browser(t)
	c := &complaints{self: self}
	if err := chromedp.Listen(ctx, c.listen); err != nil {
		t.Fatal(err)
	}
	call(t, ctx, network.Enable, network.EnableParams{})
	call(t, ctx, log.Enable, cdp.Empty{})
	open := func(t *testing.T, width int64, scheme string, scripts bool) (s seen) {
		t.Helper()
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
		call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		call(t, ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 800, DeviceScaleFactor: 1, Mobile: width < 600})
		call(t, ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts})
		do(t, ctx, chromedp.Navigate(self))
		s = do(t, ctx, chromedp.Evaluate[seen](look))
		if s.Page > s.Screen || s.Screen != int(width) {
			t.Errorf("the page is %d px wide on a screen of %d px", s.Page, s.Screen)
		}
		if fold(s.H1) != fold(a.Headline) {
			t.Errorf("got headline %q, want %q", s.H1, a.Headline)
		}
		if s.Boxes < 50 || s.Small > 0 {
			t.Errorf("got %d drawings and %d texts too small to read, want at least 50 and none", s.Boxes, s.Small)
		}
		return s
	}
	light := open(t, 1280, "light", true)
	t.Run("width=360", func(t *testing.T) { open(t, 360, "light", true) })
	t.Run("scheme=dark", func(t *testing.T) {
		if dark := open(t, 1280, "dark", true); dark.Paper == light.Paper || dark.Ink == light.Ink {
			t.Errorf("the dark page has the colours of the light one: %s on %s", dark.Ink, dark.Paper)
		}
	})
	t.Run("scripts=off", func(t *testing.T) {
		if s := open(t, 360, "light", false); s.Zoomer != 0 || light.Zoomer == 0 {
			t.Errorf("got %d zoomers without scripts and %d with, want none and some", s.Zoomer, light.Zoomer)
		}
	})
	t.Run("zoom", func(t *testing.T) {
		open(t, 360, "light", true)
		width := chromedp.Evaluate[int](`document.querySelector(".zoom svg").clientWidth`)
		before := do(t, ctx, width)
		do(t, ctx, chromedp.Click(".zoomer button:last-child"))
		after, page := do(t, ctx, width), do(t, ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth`))
		if after < 2*before-2 || page > 360 {
			t.Errorf("wider: got %d px of %d on a page of %d, want twice as much within 360", after, before, page)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loads < 5 {
		t.Errorf("saw the page loaded %d times, want 5: requests went unseen", c.loads)
	}
	for _, text := range c.all {
		t.Error(text)
	}
}
