package main

import (
	"bytes"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/tarehq/tare/arms/pages"
)

func TestAnswers(t *testing.T) {
	h, err := handler(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path, name, value string) *fasthttp.Response {
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, nil, nil)
		ctx.Request.SetRequestURI(path)
		if name != "" {
			ctx.Request.Header.Set(name, value)
		}
		h(&ctx)
		return &ctx.Response
	}
	for _, p := range pages.Files() {
		if w := ask(p.Path, "", ""); w.StatusCode() != 200 || string(w.Header.ContentType()) != p.Type || !bytes.Equal(w.Body(), p.Body) {
			t.Errorf("%s: %d, %q, %d bytes", p.Path, w.StatusCode(), w.Header.ContentType(), len(w.Body()))
		}
	}
	w := ask("/10m.txt", "Range", "bytes=1000000-1001023")
	if w.StatusCode() != 206 || string(w.Header.Peek("Content-Range")) != "bytes 1000000-1001023/10485760" || !bytes.Equal(w.Body(), pages.Files()[0].Body) {
		t.Errorf("range: %d, %q", w.StatusCode(), w.Header.Peek("Content-Range"))
	}
	if w := ask("/1k.txt", "If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"); w.StatusCode() != 304 {
		t.Errorf("not modified: %d", w.StatusCode())
	}
}
