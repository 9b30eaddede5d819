//go:build linux && amd64

package probe_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/bpf/probe"
)

// TestTurns has the target go on as another program, as it does in an upgrade: the
// probes' places are of the first, and none may be put into the second.
func TestTurns(t *testing.T) {
	s := start(t, build(t))
	p := open(t, s.pid)
	s.load(t, 2, "/")
	owners, err := p.Owners(t.Context(), []string{"target.(*truths).handle"}, 400*time.Millisecond)
	skip(t, err)
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.NewWatch(owners, probe.Price{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b, err := p.NewBrake(owners[0])
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s.turn(t, copied(t, build(t)))

	const want = "runs another program now"
	calls := map[string]func() error{
		"Run": func() error {
			_, err := w.Run(t.Context(), probe.Options{For: 100 * time.Millisecond})
			return err
		},
		"Look":     func() error { _, err := w.Look(t.Context(), 10*time.Millisecond); return err },
		"Owners":   func() error { _, err := p.Owners(t.Context(), nil, 10*time.Millisecond); return err },
		"NewBrake": func() error { _, err := p.NewBrake(owners[0]); return err },
		"Read":     func() error { _, err := b.Read(); return err },
		"CPU":      func() error { _, err := p.CPU(); return err },
	}
	for name, call := range calls {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	if err := s.proc.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the program that the target went on as has ended: %v", err)
	}
}

// TestTurnsWatched has the target go on as another program while it is watched: what
// was seen until then is kept, and why it ended is said.
func TestTurnsWatched(t *testing.T) {
	// On a busy machine it may take long before anything is seen.
	for _, wait := range []time.Duration{500 * time.Millisecond, 3 * time.Second, 12 * time.Second} {
		m, err := turned(t, wait)
		if err != nil {
			t.Log(err)
			continue
		}
		if m.Attached > 30*time.Second {
			t.Errorf("got %s, want it to end with the program", m.Attached)
		}
		if said := fmt.Sprint(m.Warnings); !strings.Contains(said, "ended early") {
			t.Errorf("got warnings %s, want to be told that it ended early", said)
		}
		return
	}
	t.Error("nothing was seen before the target went on as another program")
}

// turned watches a target that goes on as another program after a while. It is an
// error if nothing was seen until then.
func turned(t *testing.T, wait time.Duration) (*probe.Measurement, error) {
	t.Helper()
	s := start(t, build(t))
	p := open(t, s.pid)
	stop := s.load(t, 2, "/")
	defer stop()
	w := prepare(t, p, nil)
	path := copied(t, build(t))
	over := make(chan struct{})
	time.AfterFunc(wait, func() {
		defer close(over)
		get(http.DefaultClient, s.url+"/turn?into="+url.QueryEscape(path))
	})
	m, err := w.Run(t.Context(), probe.Options{For: time.Minute, Window: 100 * time.Millisecond})
	<-over
	if gone := s.proc.Signal(syscall.Signal(0)); gone != nil {
		t.Errorf("the program that the target went on as has ended: %v", gone)
	}
	return m, err
}

// TestReplaced takes the program's file away, and puts another in its place: the
// process runs on as it was, and is watched as it is.
func TestReplaced(t *testing.T) {
	path := copied(t, build(t))
	s := start(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("another"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := open(t, s.pid)
	s.load(t, 2, "/")
	m := run(t, prepare(t, p, nil), probe.Options{For: 500 * time.Millisecond})
	s.alive(t)
	exact(t, m, "target.spin")
}

// turn has the target go on as the program at a path.
func (s *server) turn(t *testing.T, path string) {
	t.Helper()
	go get(http.DefaultClient, s.url+"/turn?into="+url.QueryEscape(path)) // is never answered
	exe := fmt.Sprintf("/proc/%d/exe", s.pid)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if now, err := os.Readlink(exe); err == nil && now == path {
			return
		}
	}
	t.Fatalf("process %d did not become %s", s.pid, path)
}

// copied copies a program.
func copied(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
