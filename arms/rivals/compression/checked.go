package main

import (
	"bytes"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/tarehq/tare/arms/pages"
)

// checked unpacks the first answer to each path and compares it with the page.
type checked struct {
	next  http.Handler
	pages map[string]*firstAnswer
}

type firstAnswer struct {
	want  []byte
	right atomic.Bool
}

func newChecked(next http.Handler, all []pages.Page) *checked {
	c := &checked{next, map[string]*firstAnswer{}}
	for _, p := range all {
		c.pages[p.Path] = &firstAnswer{want: p.Body}
	}
	return c
}

func (c *checked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := c.pages[r.URL.Path]
	if p == nil || p.right.Load() {
		c.next.ServeHTTP(w, r)
		return
	}
	h := &held{header: http.Header{}}
	c.next.ServeHTTP(h, r)
	if err := p.check(h); err != nil {
		http.Error(w, fmt.Sprintf("%s: %v", r.URL.Path, err), http.StatusInternalServerError)
		return
	}
	p.right.Store(true)
	h.send(w)
}

func (p *firstAnswer) check(h *held) error {
	got, err := unpack(h.header.Get("Content-Encoding"), bytes.NewReader(h.body))
	if err != nil {
		return err
	}
	if h.status != http.StatusOK || !bytes.Equal(got, p.want) {
		return fmt.Errorf("status %d, and %d bytes that are not the page of %d", h.status, len(got), len(p.want))
	}
	return nil
}
