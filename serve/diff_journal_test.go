package serve_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// journal holds what a handler saw. It is safe for concurrent use.
type journal struct {
	mu      sync.Mutex
	lines   []string
	running int
	log     firstLines
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n") + "\n"
}

// watch counts the calls in progress and answers the client's last request.
func (j *journal) watch(h act) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		j.count(1)
		defer j.count(-1)
		h(j, w, r)
	})
}

func (j *journal) count(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running += n
}

// settle waits until no handler runs.
func (j *journal) settle(t *testing.T) {
	t.Helper()
	eventually(t, "the handler to return", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.running == 0
	})
}

// eventually polls until ok holds, within patience.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("waited in vain for %s", what)
			return
		}
	}
}

// see notes all of a request that a handler can look at and answers "seen".
func see(j *journal, w http.ResponseWriter, r *http.Request) {
	j.head(r)
	seeBody(j, w, r)
}

func seeBody(j *journal, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	j.note("body %q %s", body, class(err))
	j.note("trailer %s", fields(r.Trailer))
	io.WriteString(w, "seen")
}

// head notes everything but the body.
func (j *journal) head(r *http.Request) {
	j.note("%s %q %s %d.%d host %q", r.Method, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Host)
	j.note("url %q", fmt.Sprintf("%+v", *r.URL))
	j.note("header %s", fields(r.Header))
	j.note("length %d coding %q close %v body %v", r.ContentLength, r.TransferEncoding, r.Close, r.Body != http.NoBody)
	j.note("trailers declared %s", fields(r.Trailer))
	j.note("from %s tls %v pattern %q", r.RemoteAddr, r.TLS != nil, r.Pattern)
	j.note("context %v form %v", r.Context().Err(), r.Form)
}

func fields(h http.Header) string {
	if h == nil {
		return "none"
	}
	var all []string
	for k, v := range h {
		all = append(all, fmt.Sprintf("%s=%q", k, v))
	}
	slices.Sort(all)
	return "[" + strings.Join(all, " ") + "]"
}

// class names an error by what a handler can branch on; the text of others is
// nobody's interface.
func class(err error) string {
	var tooBig *http.MaxBytesError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &tooBig):
		return fmt.Sprintf("MaxBytesError(%d)", tooBig.Limit)
	}
	for _, known := range []error{
		io.ErrUnexpectedEOF, io.EOF, os.ErrDeadlineExceeded, net.ErrClosed, http.ErrNotSupported, http.ErrHijacked,
		http.ErrContentLength, http.ErrBodyNotAllowed, http.ErrBodyReadAfterClose, http.ErrHandlerTimeout,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "another error"
}
