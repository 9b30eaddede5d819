package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/tarehq/tare/arms/pages"
)

// The facts, each told of a file that another replaces, of the same size and time.
const (
	ownTag = "answer to its own tag" // of a file that is as it was
	early  = "replaced, first byte changed"
	late   = "replaced, a byte after the first MiB changed"
)

// facts asks a handler for a file by the tag that it had, before and after it was replaced.
func facts(set setting) map[string]string {
	set.fresh = min(set.fresh, 10*time.Millisecond) // the trial waits for it
	all := map[string]string{}
	for name, at := range map[string]int{ownTag: -1, early: 0, late: 1<<20 + 1} {
		told, err := replace(set, at)
		if err != nil {
			told = err.Error()
		}
		all[name] = told
	}
	return all
}

// replace returns the status of the answer to the tag that a file had before its byte at a
// place was changed; -1: none was.
func replace(set setting, at int) (string, error) {
	dir, err := os.MkdirTemp("", "static")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	h, err := newHandler(dir, set)
	if err != nil {
		return "", err
	}
	body := bytes.Repeat([]byte(pages.Line), (1<<20)/len(pages.Line)+1)
	if err := pages.Write(dir, []pages.Page{{Path: "/a.txt", Body: body}}); err != nil {
		return "", err
	}
	etag := ask(h, "").Header().Get("Etag")
	if etag == "" {
		return "no tag", nil
	}
	if at >= 0 {
		body[at]++
		if err := pages.Write(dir, []pages.Page{{Path: "/b.txt", Body: body}}); err != nil {
			return "", err
		}
		if err := os.Rename(dir+"/b.txt", dir+"/a.txt"); err != nil {
			return "", err
		}
		time.Sleep(set.fresh) // until it has to be seen
	}
	status := ask(h, etag).Code
	return fmt.Sprintf("%d %s", status, http.StatusText(status)), nil
}

func ask(h http.Handler, etag string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/a.txt", nil)
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
