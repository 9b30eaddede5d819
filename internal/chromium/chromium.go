// Package chromium shows pages to tests in a headless Chromium, and tells what
// pages should not have done: write to the console, fail, or ask for anything but
// themselves.
package chromium

import (
	"cmp"
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
)

// shots takes part of looking with one's own eyes, which no check replaces.
var shots = flag.String("shots", "", "folder to write a picture of every page looked at to")

// Window is a browser with one page.
type Window struct {
	ctx    context.Context
	opened int // times that a page was

	mu    sync.Mutex
	wrong []string
	self  string
	site  string // what the page may ask for begins so; "" = itself alone
	loads int    // of the page itself
}

// View is how a page is looked at.
type View struct {
	Width   int64  // of the screen, px
	Height  int64  // 0: 800
	Scheme  string // light or dark
	Scripts bool
}

// New starts Chromium without any traffic of its own. It ends with the test, which
// is skipped where there is none.
func New(t *testing.T) *Window {
	t.Helper()
	w := &Window{ctx: start(t)}
	if err := chromedp.Listen(w.ctx, w.listen); err != nil {
		t.Fatal(err)
	}
	call(t, w.ctx, network.Enable, network.EnableParams{})
	call(t, w.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	call(t, w.ctx, log.Enable, cdp.Empty{})
	return w
}

func start(t *testing.T) context.Context {
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

func (w *Window) listen(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		w.blame("console: %s", e.Type)
	case *runtime.EventExceptionThrown:
		w.blame("exception: %v", e.ExceptionDetails)
	case *log.EventEntryAdded:
		w.blame("log: %s", e.Entry.Text)
	case *network.EventRequestWillBeSent:
		u, _, _ := strings.Cut(e.Request.URL, "#")
		switch {
		case u == w.self:
			w.loads++
		case w.site != "" && strings.HasPrefix(u, w.site):
		case !strings.HasPrefix(u, "data:"):
			w.blame("request: %s", u)
		}
	}
}

func (w *Window) blame(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// Open shows the page that a file holds.
func (w *Window) Open(t *testing.T, file string, v View) {
	t.Helper()
	w.show(t, (&url.URL{Scheme: "file", Path: file}).String(), "", v)
}

// OpenSite shows a page of a server, which may ask for what its server has.
func (w *Window) OpenSite(t *testing.T, server, path string, v View) {
	t.Helper()
	w.show(t, server+path, server+"/", v)
}

func (w *Window) show(t *testing.T, address, site string, v View) {
	t.Helper()
	w.mu.Lock()
	w.self, w.site = address, site
	w.opened++
	w.mu.Unlock()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.Scheme}}
	call(t, w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	call(t, w.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: v.Width, Height: cmp.Or(v.Height, 800), DeviceScaleFactor: 1, Mobile: v.Width < 600})
	call(t, w.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !v.Scripts})
	do(t, w.ctx, chromedp.Navigate(address))
}

// Check reports what pages did wrong; it wants to have seen them loaded.
func (w *Window) Check(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loads < w.opened {
		t.Errorf("saw pages loaded %d times, want %d: requests went unseen", w.loads, w.opened)
	}
	for _, text := range w.wrong {
		t.Error(text)
	}
}

// Click clicks on what the CSS selector finds first.
func (w *Window) Click(t *testing.T, selector string) {
	t.Helper()
	do(t, w.ctx, chromedp.Click(selector))
}

// Picture keeps the whole page, where the flag -shots asks for it.
func (w *Window) Picture(t *testing.T, name string) {
	t.Helper()
	w.keep(t, name, chromedp.FullScreenshot(100))
}

// Screen keeps what the screen shows of the page, likewise.
func (w *Window) Screen(t *testing.T, name string) {
	t.Helper()
	w.keep(t, name, chromedp.CaptureScreenshot())
}

func (w *Window) keep(t *testing.T, name string, look chromedp.Action[[]byte]) {
	t.Helper()
	if *shots == "" {
		return
	}
	png := do(t, w.ctx, look)
	if err := os.WriteFile(filepath.Join(*shots, name), png, 0o666); err != nil {
		t.Fatal(err)
	}
}

// Evaluate returns what a script in the page comes to.
func Evaluate[T any](t *testing.T, w *Window, script string) T {
	t.Helper()
	return do(t, w.ctx, chromedp.Evaluate[T](script))
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
