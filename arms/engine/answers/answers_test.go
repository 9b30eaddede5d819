package answers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tarehq/tare/arms/engine/answers"
)

func TestSizes(t *testing.T) {
	for name, tt := range map[string]struct {
		body []byte
		want int
	}{
		"plain":  {answers.Plain(), 5},
		"object": {answers.Object(), 1 << 10},
		"page":   {answers.Page(), 64 << 10},
		"long":   {answers.Long(), 100 << 10},
	} {
		if len(tt.body) != tt.want {
			t.Errorf("%s: got %d bytes, want %d", name, len(tt.body), tt.want)
		}
	}
	if !json.Valid(answers.Object()) {
		t.Errorf("the object is not JSON: %s", answers.Object())
	}
	lines := bytes.Fields(answers.Page())
	for i, line := range lines {
		if got, _, _ := bytes.Cut(line, []byte(".")); string(got) != strconv.Itoa(i) {
			t.Fatalf("line %d of the page begins with %q", i, got)
		}
	}
}

func TestHandler(t *testing.T) {
	long := strings.Repeat("x", answers.MostEcho)
	tests := []struct {
		method, path string
		body         io.Reader
		status       int
		contentType  string
		want         string
	}{
		{"GET", "/plain", nil, 200, answers.Text, "hello"},
		{"GET", "/json", nil, 200, answers.JSON, string(answers.Object())},
		{"GET", "/page", nil, 200, answers.Text, string(answers.Page())},
		{"GET", "/long", nil, 200, answers.Text, string(answers.Long())},
		{"POST", "/echo", strings.NewReader("to be read"), 200, answers.Text, "to be read"},
		{"POST", "/echo", iotest.OneByteReader(strings.NewReader(long)), 200, answers.Text, long},
		{"POST", "/echo", strings.NewReader(""), 200, answers.Text, ""},
		{"POST", "/echo", strings.NewReader(long + "x"), 413, answers.Text, "the body is too long\n"},
		{"POST", "/echo", iotest.ErrReader(errors.New("reset")), 400, answers.Text, "the body could not be read\n"},
		{"GET", "/echo", nil, 404, answers.Text, answers.NotFound},
		{"POST", "/plain", nil, 404, answers.Text, answers.NotFound},
		{"GET", "/other", nil, 404, answers.Text, answers.NotFound},
	}
	h := answers.New()
	for _, tt := range tests {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, tt.body))
		if w.Code != tt.status || w.Header().Get("Content-Type") != tt.contentType || w.Body.String() != tt.want {
			t.Errorf("%s %s: got %d %s %.80q, want %d %s %.80q", tt.method, tt.path,
				w.Code, w.Header().Get("Content-Type"), w.Body, tt.status, tt.contentType, tt.want)
		}
		if got := w.Header().Get("Content-Length"); tt.status == 200 && got != strconv.Itoa(len(tt.want)) {
			t.Errorf("%s %s: got Content-Length %q, want %d", tt.method, tt.path, got, len(tt.want))
		}
	}
}

// discarder is a response writer that keeps its header.
type discarder struct{ header http.Header }

func (d discarder) Header() http.Header       { return d.header }
func (discarder) WriteHeader(int)             {}
func (discarder) Write(p []byte) (int, error) { return len(p), nil }

func TestFixedAnswersAllocateNothing(t *testing.T) {
	h, w := answers.New(), discarder{http.Header{}}
	for _, path := range []string{answers.PlainPath, answers.JSONPath, answers.PagePath} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", path, got)
		}
	}
}
