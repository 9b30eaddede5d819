// Package web shows the runs of a folder as pages.
//
// [New] makes a handler of an index of package history. Its pages are complete without
// scripts: one zooms drawings, one follows a run that goes on. Everything is read-only
// unless [Options.Token] allows whoever knows it to add runs.
//
// All text in a run's folder may come from a stranger. It reaches pages as text alone, and
// the policy that is sent with every page lets nothing run but these two scripts. Reports
// and flame graphs, which are files of their own with scripts of their own, are sent as
// sandboxed pages without an origin.
//
// It is not meant to be put on the open internet without TLS before it, and it has no
// users: whoever reaches it reads all runs.
package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/web/history"
)

//go:embed page.tmpl
var pageSource string

//go:embed page.css
var pageStyle string

//go:embed live.js
var liveScript string

// Options are what a site is made of.
type Options struct {
	Index *history.Index
	Token string       // that allows uploads; "" = none are allowed
	Log   *slog.Logger // of what went wrong; nil = nowhere

	// AnyHost answers requests whatever host they name. Without it only those for this
	// machine's own addresses and for localhost are answered, so that no page of
	// somebody else's reads runs through a name of its own.
	AnyHost bool
}

// Site is a handler. It is safe for concurrent use.
type Site struct {
	o     Options
	mux   *http.ServeMux
	token [sha256.Size]byte
	pages *template.Template

	analyses analyses
	patience time.Duration // within which a page is made, or more of an archive comes
	streams  chan struct{} // a place for each live view
	turns    chan struct{} // a place for each page that is made of much
	adding   sync.Mutex    // one upload at a time
	claims   func() (claimList, error)
}

const (
	mostStreams = 64 // live views at one time
	mostTurns   = 2  // pages of profiles or of series that are made at one time

	// patience is less than a server takes to write an answer: a database that is cut off says
	// nothing for a quarter of an hour.
	patience = 30 * time.Second
)

// New returns the site of an index.
func New(o Options) *Site {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Site{o: o, mux: http.NewServeMux(), token: sha256.Sum256([]byte(o.Token)), patience: patience, streams: make(chan struct{}, mostStreams), turns: make(chan struct{}, mostTurns),
		pages: template.Must(template.New("page").Parse(pageSource)), claims: sync.OnceValues(readClaims)}
	s.analyses.places = make(chan struct{}, mostAnalyses)
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":               s.listRuns,
		"GET /runs/{run}":        s.showRun,
		"GET /runs/{run}/report": s.showReport,
		"GET /runs/{run}/cost":   s.showCost,
		"GET /runs/{run}/live":   s.showLive,
		"GET /studies":           s.listStudies,
		"GET /studies/{study}":   s.showStudy,
		"GET /compare":           s.compare,
		"GET /compare/owners":    s.compareOwners,
		"GET /claims":            s.listClaims,
		"GET /leaderboard":       s.showLeaders,
		"GET /style.css":         asset("text/css; charset=utf-8", doc.Style()+pageStyle),
		"GET /live.js":           asset("text/javascript; charset=utf-8", liveScript),
		"GET /zoom.js":           asset("text/javascript; charset=utf-8", doc.ZoomScript()),
		"/": func(http.ResponseWriter, *http.Request) error {
			return problem{http.StatusNotFound, "There is no such page."}
		},
	} {
		s.mux.HandleFunc(pattern, s.answer(s.inTime(h)))
	}
	s.mux.HandleFunc("GET /runs/{run}/events", s.answer(s.streamEvents))
	s.mux.HandleFunc("POST /upload", s.answer(s.upload))
	return s
}

// inTime gives a page up that takes too long.
func (s *Site) inTime(h func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), s.patience)
		defer cancel()
		err := h(w, r.WithContext(ctx))
		if errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil {
			s.o.Log.Error("a page took too long", "path", r.URL.Path, "error", err)
			return problem{http.StatusServiceUnavailable, "This page took too long: the machine or its database is busy. Try again."}
		}
		return err
	}
}

// asset answers with a file that comes with the program.
func asset(kind, text string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "max-age=60")
		_, err := w.Write([]byte(text))
		return err
	}
}

const (
	// policy is that of the site's own pages.
	policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	// sandboxed is that of pages that bring style and script of their own: they run
	// without an origin and ask for nothing.
	sandboxed = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// ServeHTTP answers a request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !s.o.AnyHost && !isLocal(r.Host) {
		http.Error(w, "this server answers requests for its own address alone; start it with --listen and another address for others", http.StatusMisdirectedRequest)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// isLocal reports whether a host is this machine by its name or address.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// problem is an error that is answered with its own status, and shown.
type problem struct {
	status int
	text   string
}

func (p problem) Error() string { return p.text }

// answer runs a page's function. What goes wrong becomes a page; nothing ends the server.
func (s *Site) answer(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.o.Log.Error("a page failed", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.fail(w, r, problem{http.StatusInternalServerError, "This page could not be made. The server's log says more."})
		}()
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// fail answers with what went wrong.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && r.Method != http.MethodPost {
		return // nobody reads it; but who stopped sending may still read
	}
	var p problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, history.ErrNoRun), errors.Is(err, fs.ErrNotExist):
		p = problem{http.StatusNotFound, "There is no such run, or it was removed."}
	default:
		s.o.Log.Error("a page failed", "path", r.URL.Path, "error", err)
		p = problem{http.StatusInternalServerError, "This page could not be made. The server's log says more."}
	}
	if r.Method == http.MethodPost { // a program asks
		http.Error(w, p.text, p.status)
		return
	}
	w.Header().Set("Content-Security-Policy", policy)
	v := view{Title: http.StatusText(p.status), Status: p.status}
	v.add(doc.Heading{Level: 1, Text: http.StatusText(p.status)}, doc.Warning{Text: doc.Plain(p.text)})
	if err := s.render(w, &v); err != nil {
		s.o.Log.Error("a page failed", "path", r.URL.Path, "error", err)
	}
}

// view is a page of the site.
type view struct {
	Title  string
	Here   string // path of the page's entry in the navigation; "" = none
	Status int    // 0 means 200
	Form   any    // what the template's form of this page shows; nil = none
	Kind   string // of the form
	Live   string // path of the events that the page follows; "" = none
	Every  int    // seconds after which a page without scripts is loaded again; 0 = not at all
	Blocks []doc.Block

	Body template.HTML
}

func (v *view) add(blocks ...doc.Block) { v.Blocks = append(v.Blocks, blocks...) }

// Nav are the entries of the navigation.
func (v *view) Nav() [][2]string {
	return [][2]string{{"/", "Runs"}, {"/studies", "Studies"}, {"/compare", "Compare"}, {"/claims", "Claims"}, {"/leaderboard", "Leaderboard"}}
}

// inTurn does what takes much time or memory, beside few others. What comes of it is to be sent
// afterwards: readers may be slow.
func (s *Site) inTurn(ctx context.Context, do func() error) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// render writes a page, whole or not at all.
func (s *Site) render(w http.ResponseWriter, v *view) error {
	var body, out bytes.Buffer
	if err := doc.Fragment(&body, v.Blocks...); err != nil {
		return err
	}
	v.Body = template.HTML(body.String())
	if err := s.pages.Execute(&out, v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if v.Status != 0 {
		w.WriteHeader(v.Status)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Follow keeps the index up to date until ctx ends: it looks at names and times in the
// folder, mostly for a twentieth of the time, and then reads what is new.
func Follow(ctx context.Context, x *history.Index, log *slog.Logger) {
	for {
		began := time.Now()
		if _, err := x.Sync(ctx); err != nil && ctx.Err() == nil {
			log.Error("updating the index", "error", err)
		}
		pause := min(max(2*time.Second, 20*time.Since(began)), 30*time.Second)
		for {
			n, err := x.Analyse(ctx, 20, time.Now())
			if err != nil && ctx.Err() == nil {
				log.Error("updating the index", "error", err)
			}
			if n == 0 || time.Since(began) > pause {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(0, pause-time.Since(began))):
		}
	}
}
