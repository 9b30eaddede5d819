package accesslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/accesslog"
)

// turning writes so many bytes, and the others elsewhere.
type turning struct {
	left      atomic.Int64
	good, bad io.Writer
}

func (w *turning) Write(p []byte) (int, error) {
	if w.left.Add(-int64(len(p))) >= 0 {
		return w.good.Write(p)
	}
	return w.bad.Write(p)
}

// TestDiskFillsAmidLoad has each client get its own answer while the disk is full, and each
// line be on it or counted.
func TestDiskFillsAmidLoad(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("SKIPPED: no file stands for a full disk here: %v", err)
	}
	defer full.Close()
	for _, sync := range []bool{false, true} {
		name := filepath.Join(t.TempDir(), "access.log")
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		to := &turning{good: file, bad: full}
		to.left.Store(64 << 10)
		log := open(t, accesslog.Options{To: to, Sync: sync, Every: time.Millisecond, Full: accesslog.Wait})
		asked := askAll(t, log)
		if err := log.Close(t.Context()); err == nil {
			t.Error("Close returns no error")
		}
		written, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(written, []byte("\n")); n == 0 || log.Lost() == 0 || n+int(log.Lost()) != asked {
			t.Errorf("sync %t: %d lines written and %d lost of %d", sync, n, log.Lost(), asked)
		}
	}
}

// TestReaderGoesAmidLoad has each client get its own answer while the reader of the log
// stops reading, and goes.
func TestReaderGoesAmidLoad(t *testing.T) {
	for _, sync := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		go func() {
			_, _ = io.CopyN(io.Discard, r, 32<<10)
			time.Sleep(100 * time.Millisecond) // the pipe fills
			r.Close()
		}()
		log := open(t, accesslog.Options{To: w, Sync: sync, Every: time.Millisecond, Full: accesslog.Wait})
		asked := askAll(t, log)
		if err := log.Close(t.Context()); err == nil {
			t.Error("Close returns no error")
		}
		if lost := int(log.Lost()); lost == 0 || lost >= asked {
			t.Errorf("sync %t: %d of %d lost", sync, lost, asked)
		}
	}
}

// askAll has clients ask a server behind the log, and returns how many requests that were.
func askAll(t *testing.T, log *accesslog.Log) int {
	t.Helper()
	const clients, each = 50, 100
	s := httptest.NewServer(log.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })))
	defer s.Close()
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for i := range each {
				path := fmt.Sprintf("/%d/%d", c, i)
				resp, err := (&http.Client{Transport: transport}).Get(s.URL + path)
				if err != nil {
					t.Error(err)
					continue
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(b) != path || resp.StatusCode != http.StatusOK {
					t.Errorf("%s: got %d %q, %v", path, resp.StatusCode, b, err)
				}
			}
		})
	}
	all.Wait()
	return clients * each
}

const outputEnv = "ACCESSLOG_TEST_OUTPUT"

// TestMain is a process that logs to its standard output where TestStandardOutput asks for
// one.
func TestMain(m *testing.M) {
	switch os.Getenv(outputEnv) {
	case "":
		os.Exit(m.Run())
	case "ignore":
		signal.Ignore(syscall.SIGPIPE)
	}
	log, err := accesslog.New(accesslog.Options{To: os.Stdout, Every: time.Millisecond})
	if err != nil {
		panic(err)
	}
	h := log.Middleware(http.NotFoundHandler())
	for begun := time.Now(); log.Lost() == 0 && time.Since(begun) < 30*time.Second; time.Sleep(time.Millisecond) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	if log.Lost() == 0 {
		os.Exit(3)
	}
	os.Exit(0)
}

// TestStandardOutput takes away the reader of a process's standard output: it ends, unless
// it ignores SIGPIPE.
func TestStandardOutput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: SIGPIPE: Windows has none")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]string{"default": "signal: broken pipe", "ignore": "exit status 0"} {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), outputEnv+"="+how)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
			t.Error(err)
		}
		out.Close()
		_ = cmd.Wait() // the state tells
		if got := cmd.ProcessState.String(); got != want {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
	}
}

// TestOptionsPanic has a line for each request whose user's functions panic, or one lost, and
// the panic pass on.
func TestOptionsPanic(t *testing.T) {
	broken := func(*http.Request) string { panic("broken") }
	for name, o := range map[string]accesslog.Options{
		"user": {User: broken}, "trace": {Trace: broken},
		"keep":   {Keep: func(*http.Request, *accesslog.Line) bool { panic("broken") }},
		"format": {Format: func([]byte, *accesslog.Line) []byte { panic("broken") }},
	} {
		var to bytes.Buffer
		o.To = &to
		log := open(t, o)
		h := log.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for range 2 {
			func() {
				defer func() {
					if p := recover(); p != "broken" {
						t.Errorf("%s: the panic is %v", name, p)
					}
				}()
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			}()
		}
		if err := log.Close(t.Context()); err != nil {
			t.Error(err)
		}
		lines := bytes.Count(to.Bytes(), []byte(`"status":500`))
		if n := int(log.Lost()); lines+n != 2 || (n == 2) != (name == "format") {
			t.Errorf("%s: %d lines of a panic and %d lost:\n%s", name, lines, n, to.Bytes())
		}
	}
}

// broken is a writer that panics.
type broken struct{}

func (broken) Write([]byte) (int, error) { panic("broken") }

// TestWriterPanics has requests go on, and the process, when the writer panics.
func TestWriterPanics(t *testing.T) {
	for _, sync := range []bool{false, true} {
		log := open(t, accesslog.Options{To: broken{}, Sync: sync})
		h := log.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for range 3 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}
		if err := log.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "panicked: broken") || log.Lost() != 3 {
			t.Errorf("sync %t: %v, %d lost", sync, err, log.Lost())
		}
	}
}

// failing is a handler of slog that fails or panics.
type failing struct {
	slog.Handler
	panics bool
}

func (f failing) Handle(context.Context, slog.Record) error {
	if f.panics {
		panic("broken")
	}
	return errors.New("the disk is full")
}

// TestSlogFails has requests go on when the handler of slog fails or panics.
func TestSlogFails(t *testing.T) {
	for _, panics := range []bool{false, true} {
		log := open(t, accesslog.Options{Slog: failing{slog.NewTextHandler(io.Discard, nil), panics}})
		h := log.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for range 3 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}
		if err := log.Close(t.Context()); err != nil || log.Lost() != 3 {
			t.Errorf("panics %t: %v, %d lost", panics, err, log.Lost())
		}
	}
}
