package request_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/client/transport/internal/request"
)

// counted counts how often it is closed.
type counted struct {
	io.Reader
	closes int
}

func (b *counted) Close() error { b.closes++; return nil }

// atEnd notes whether the body was closed when its last chunk was written.
type atEnd struct {
	body   *counted
	closes int
}

func (w *atEnd) Write(b []byte) (int, error) {
	if strings.HasPrefix(string(b), "0\r\n") {
		w.closes = w.body.closes
	}
	return len(b), nil
}

// A body in chunks is closed once, before its last chunk: who gets the answer to the whole of it
// may look at the body.
func TestClosedBeforeItsEnd(t *testing.T) {
	body := &counted{Reader: strings.NewReader("hello")}
	to := &atEnd{body: body}
	if err := request.Send(to, &http.Request{Body: body, ContentLength: -1}, true); err != nil {
		t.Fatal(err)
	}
	if to.closes != 1 || body.closes != 1 {
		t.Errorf("closed %d times before the last chunk and %d times in all, want once", to.closes, body.closes)
	}
}
