package main

import (
	"context"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/accesslog"
	"github.com/tarehq/tare/serve/proxy/config"
)

// journal is the access log that a file names, if it names one.
type journal struct {
	path   string
	file   *os.File // nil: none
	log    *accesslog.Log
	begun  atomic.Int64 // requests whose lines are not written yet
	ending sync.Once
	closed atomic.Bool
}

// openJournal opens the log at a path. It is the one that was there, unless that was moved away:
// then it is let go. It is not where the program's replies go.
func openJournal(path string, was *journal, replies os.FileInfo) (*journal, error) {
	if was != nil && was.path == path && was.stays() {
		return was, nil
	}
	if path == "" {
		return &journal{}, nil
	}
	if there, err := os.Stat(path); err == nil && os.SameFile(there, replies) {
		return nil, &config.Problem{Path: "access_log", Text: path + " has the answers to files; use /dev/stderr, or a file"}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, &config.Problem{Path: "access_log", Text: err.Error()}
	}
	log, err := accesslog.New(accesslog.Options{To: f, Upstream: upstreamOf})
	if err != nil {
		f.Close()
		return nil, err
	}
	return &journal{path: path, file: f, log: log}, nil
}

// stays reports whether the path still leads to the file.
func (j *journal) stays() bool {
	if j.file == nil {
		return true
	}
	open, err := j.file.Stat()
	there, lost := os.Stat(j.path)
	return err == nil && lost == nil && os.SameFile(open, there)
}

// logged writes a line for each request by the journal that there is.
type logged struct {
	g    *gateway
	next http.Handler
}

func (l *logged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	j := l.g.journal.Load()
	if j.file == nil {
		l.next.ServeHTTP(w, r)
		return
	}
	j.begun.Add(1)
	defer j.begun.Add(-1)
	j.log.Middleware(l.next).ServeHTTP(w, upstream.With(r, new(atomic.Pointer[accesslog.Upstream])))
}

// upstream is a place for who was asked. It is written beside the log where a time-out has answered
// the request.
var upstream = chain.NewKey[*atomic.Pointer[accesslog.Upstream]]("upstream")

func noteUpstream(r *http.Request, address string, n int, took time.Duration) {
	if to, ok := upstream.Value(r); ok {
		to.Store(&accesslog.Upstream{Address: address, Took: took, Attempts: n})
	}
}

func upstreamOf(r *http.Request) accesslog.Upstream {
	if to, ok := upstream.Value(r); ok {
		if u := to.Load(); u != nil {
			return *u
		}
	}
	return accesslog.Upstream{}
}

// retire has a journal be closed once the requests that have begun by it, WebSockets among them,
// have written their lines, and at the gateway's end at last.
func (g *gateway) retire(j *journal) {
	g.retired = append(slices.DeleteFunc(g.retired, func(j *journal) bool { return j.closed.Load() }), j)
	j.closeUnused()
}

// closeUnused closes it once nobody uses it. It waits first: a request may have found it just now.
func (j *journal) closeUnused() {
	time.AfterFunc(time.Second, func() {
		if j.begun.Load() > 0 {
			j.closeUnused()
			return
		}
		j.close()
	})
}

// closeJournals closes all that are open.
func (g *gateway) closeJournals() {
	for _, j := range append(g.retired, g.journal.Load()) {
		j.close()
	}
}

// close writes what waits. It may be called more than once.
func (j *journal) close() {
	j.ending.Do(func() {
		defer j.closed.Store(true)
		if j.file == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = j.log.Close(ctx) // the log has nobody to tell
		j.file.Close()
	})
}
