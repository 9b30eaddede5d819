package lease_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/internal/lease"
)

// fragile is a writer that must not be used once it is spent, as that for HTTP/2. A Write
// waits until its deadline has passed.
type fragile struct {
	*httptest.ResponseRecorder
	t       *testing.T
	spent   bool
	writing chan struct{}
	late    chan struct{}
}

func (f *fragile) whole() {
	if f.spent {
		f.t.Error("the writer was used after the end")
	}
}

func (f *fragile) Header() http.Header { f.whole(); return f.ResponseRecorder.Header() }

func (f *fragile) WriteHeader(status int) { f.whole(); f.ResponseRecorder.WriteHeader(status) }

func (f *fragile) Write(p []byte) (int, error) {
	f.whole()
	if string(p) == "wait" {
		close(f.writing)
		<-f.late
		return 0, errors.New("late")
	}
	return f.ResponseRecorder.Write(p)
}

func (f *fragile) FlushError() error { f.whole(); f.ResponseRecorder.Flush(); return nil }

func (f *fragile) EnableFullDuplex() error { f.whole(); return nil }

func (f *fragile) SetReadDeadline(time.Time) error { f.whole(); return nil }

func (f *fragile) SetWriteDeadline(time.Time) error { f.whole(); close(f.late); return nil }

func (f *fragile) CloseNotify() <-chan bool { f.whole(); return make(chan bool) }

func (f *fragile) Push(string, *http.PushOptions) error { f.whole(); return nil }

func newFragile(t *testing.T) *fragile {
	return &fragile{ResponseRecorder: httptest.NewRecorder(), t: t, writing: make(chan struct{}), late: make(chan struct{})}
}

// calls are all methods that return an error.
func calls(w *lease.Writer) map[string]error {
	_, err := w.Write([]byte("text"))
	return map[string]error{
		"Write": err, "FlushError": w.FlushError(), "Push": w.Push("/a", nil), "EnableFullDuplex": w.EnableFullDuplex(),
		"SetReadDeadline": w.SetReadDeadline(time.Now()), "SetWriteDeadline": w.SetWriteDeadline(time.Now()),
	}
}

func TestEnd(t *testing.T) {
	to := newFragile(t)
	w := &lease.Writer{To: to}
	w.Header().Set("X-Own", "1")
	w.WriteHeader(http.StatusTeapot)
	for name, err := range calls(w) {
		if err != nil {
			t.Errorf("%s before the end: %v", name, err)
		}
	}
	w.CloseNotify()
	if w.Over() {
		t.Error("it is over before the end")
	}
	w.End()
	to.spent = true
	for name, err := range calls(w) {
		if !errors.Is(err, lease.ErrOver) {
			t.Errorf("%s after the end: %v, want %v", name, err, lease.ErrOver)
		}
	}
	w.WriteHeader(http.StatusOK)
	if got := w.Header().Get("X-Own"); got != "1" {
		t.Errorf("after the end the map has %q, want it as it was", got)
	}
	select {
	case <-w.CloseNotify():
		t.Error("CloseNotify tells of something after the end")
	default:
	}
	if !w.Over() || to.Code != http.StatusTeapot || to.Body.String() != "text" {
		t.Errorf("over %t, answer %d %q, want true, 418 and text", w.Over(), to.Code, to.Body)
	}
}

// TestHeaderAfterEnd asks for the map only then.
func TestHeaderAfterEnd(t *testing.T) {
	to := newFragile(t)
	w := &lease.Writer{To: to}
	w.End()
	to.spent = true
	w.Header().Set("X-Late", "1")
	if got := w.Header().Get("X-Late"); got != "1" {
		t.Errorf("the map has %q, want 1", got)
	}
}

// TestEndWaits ends while another goroutine writes: a deadline reaches the write, and End
// returns after it.
func TestEndWaits(t *testing.T) {
	to := newFragile(t)
	w := &lease.Writer{To: to}
	wrote, ended := make(chan error, 1), make(chan struct{})
	go func() { _, err := w.Write([]byte("wait")); wrote <- err }()
	<-to.writing
	go func() { w.End(); close(ended) }()
	select {
	case <-ended:
		t.Fatal("it has ended amid a write")
	case <-time.After(20 * time.Millisecond):
	}
	if err := w.SetWriteDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := <-wrote; err == nil || !strings.Contains(err.Error(), "late") {
		t.Errorf("the write returned %v, want that it is late", err)
	}
}

// TestAbort does not wait for the client.
func TestAbort(t *testing.T) {
	to := newFragile(t)
	w := &lease.Writer{To: to}
	wrote := make(chan error, 1)
	go func() { _, err := w.Write([]byte("wait")); wrote <- err }()
	<-to.writing
	w.Abort()
	if err := <-wrote; err == nil || !strings.Contains(err.Error(), "late") {
		t.Errorf("the write returned %v, want that it is late", err)
	}
	to.spent = true
	w.Abort() // nothing is left to be done
	if !w.Over() {
		t.Error("it is not over")
	}
}

// TestPlainWriter has a writer with no more than it must have.
func TestPlainWriter(t *testing.T) {
	w := &lease.Writer{To: struct{ http.ResponseWriter }{httptest.NewRecorder()}}
	if err := w.Push("/a", nil); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("Push: %v, want %v", err, http.ErrNotSupported)
	}
	if err := w.FlushError(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("FlushError: %v, want %v", err, http.ErrNotSupported)
	}
	select {
	case <-w.CloseNotify():
		t.Error("CloseNotify tells of something")
	default:
	}
}
