package answer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/answer"
	"github.com/tarehq/tare/lab/study"
)

// How an answer is sent is a field as any other to the load, and so before it.
func TestReadyKnowsTransferEncoding(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, "hello")
	}))
	defer srv.Close()
	want := study.Target{Path: "/", Verify: study.Verify{Header: map[string]string{"Transfer-Encoding": "chunked"}}}
	if err := answer.Ask(t.Context(), srv.URL, want); err != nil {
		t.Error(err)
	}
	want.Verify.Header["Transfer-Encoding"] = "gzip"
	if err := answer.Ask(t.Context(), srv.URL, want); err == nil || !strings.Contains(err.Error(), `header Transfer-Encoding is ["chunked"], want "gzip"`) {
		t.Errorf("got %v, want what it is", err)
	}
}

// All fields of a name are shown where none is as it should be.
func TestUnlikeHeader(t *testing.T) {
	v := study.Verify{Header: map[string]string{"Vary": "Cookie"}}
	for _, tt := range []struct {
		header http.Header
		want   string
	}{
		{http.Header{"Vary": {"Accept", "Origin"}}, `header Vary is ["Accept" "Origin"], want "Cookie"`},
		{http.Header{}, `header Vary is [], want "Cookie"`},
	} {
		if err := answer.Check(v, answer.Answer{Status: http.StatusOK, Header: tt.header}); err == nil || err.Error() != tt.want {
			t.Errorf("%v: got %v, want %s", tt.header, err, tt.want)
		}
	}
}
