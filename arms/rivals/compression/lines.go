package main

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// lines has answers to paths such as /10/16k.html come by a line of 10 Mbit/s that nobody
// else uses: each part takes its time after it was written and the part before has gone, as
// if the handler went on meanwhile. The whole is sent when its last byte would arrive.
// Header and distance are not counted.
type lines struct {
	next http.Handler
	pool sync.Pool // of *held
}

func newLines(next http.Handler) *lines {
	return &lines{next: next, pool: sync.Pool{New: func() any { return &held{header: http.Header{}} }}}
}

func (l *lines) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	mbit, err := strconv.Atoi(first)
	if !ok || err != nil || mbit < 1 {
		l.next.ServeHTTP(w, r)
		return
	}
	stripped := *r
	stripped.URL = &url.URL{Path: "/" + rest, RawQuery: r.URL.RawQuery}
	h := l.pool.Get().(*held)
	defer l.pool.Put(h)
	h.reset(mbit)
	l.next.ServeHTTP(h, &stripped)
	time.Sleep(time.Until(h.free))
	h.send(w)
}

// held keeps an answer until it is sent.
type held struct {
	header http.Header
	status int
	body   []byte
	mbit   int       // 0: there is no line
	free   time.Time // when all that was written has gone by the line
}

func (h *held) reset(mbit int) {
	clear(h.header)
	h.status, h.body, h.mbit, h.free = 0, h.body[:0], mbit, time.Time{}
}

func (h *held) Header() http.Header { return h.header }

func (h *held) WriteHeader(status int) {
	if h.status == 0 && status >= 200 {
		h.status = status
	}
}

func (h *held) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	h.body = append(h.body, p...)
	if h.mbit > 0 {
		if now := time.Now(); h.free.Before(now) {
			h.free = now
		}
		h.free = h.free.Add(time.Duration(len(p)) * 8 * time.Microsecond / time.Duration(h.mbit))
	}
	return len(p), nil
}

// Flush does nothing: all is sent at once.
func (h *held) Flush() {}

func (h *held) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), h.header)
	w.WriteHeader(h.status)
	_, _ = w.Write(h.body) // fails when the client has gone
}
