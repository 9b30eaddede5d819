package watchverb

import (
	"bytes"
	"html"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/page"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/cost/watch/ring"
	"github.com/tarehq/tare/doc"
)

// kept hands out the profiles that are kept, and nothing else: at /profiles/SERVICE/FILE as
// they are, at /flame/SERVICE/FILE as a page with a flame graph, at / a list of the latest.
type kept struct {
	root *os.Root   // nothing leads out of it
	one  sync.Mutex // page is made at a time; it is sent without
}

// serveKept is a handler for the profiles in a folder.
func serveKept(root *os.Root) http.Handler {
	k := &kept{root: root}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", k.serveList)
	mux.HandleFunc("GET /profiles/{service}/{file}", k.serveFile)
	mux.HandleFunc("GET /flame/{service}/{file}", k.serveFlame)
	return mux
}

// open opens the profile that a request asks for; nil if there is none.
func (k *kept) open(r *http.Request) *os.File {
	service, file := r.PathValue("service"), r.PathValue("file")
	if !strings.HasSuffix(file, ".pb.gz") || strings.ContainsAny(file, `/\`) {
		return nil
	}
	// The folder's own name is escaped, and the request's was unescaped.
	for _, name := range []string{service, escapedIn(r.URL.EscapedPath())} {
		if strings.ContainsAny(name, `/\`) {
			continue
		}
		if f, err := k.root.Open(path.Join(name, file)); err == nil {
			return f
		}
	}
	return nil
}

// escapedIn is the second element of a path, as it was sent.
func escapedIn(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

func (k *kept) serveFile(w http.ResponseWriter, r *http.Request) {
	f := k.open(r)
	if f == nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", info.ModTime(), f)
}

func (k *kept) serveFlame(w http.ResponseWriter, r *http.Request) {
	f := k.open(r)
	if f == nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	out, err := k.draw(f, r.PathValue("service"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", sandboxed)
	out.WriteTo(w) // an error is the client's, which has gone
}

// mostListed is how many profiles are listed.
const mostListed = 200

// serveList lists the latest profiles, each with a link to its flame graph.
func (k *kept) serveList(w http.ResponseWriter, _ *http.Request) {
	k.one.Lock()
	all, err := ring.List(k.root.Name())
	k.one.Unlock()
	var out bytes.Buffer
	if err == nil {
		err = doc.HTML(&out, listPage(all[max(0, len(all)-mostListed):]), doc.HTMLOptions{})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", sandboxed)
	out.WriteTo(w) // an error is the client's
}

// listPage lists profiles, of which the oldest comes first, in the other order.
func listPage(all []ring.Entry) doc.Page {
	p := doc.Page{Title: "Profiles of tare watch"}
	p.Add(doc.Heading{Level: 1, Text: p.Title}, doc.Note("The latest come first. Times are UTC. The metrics are at /metrics."))
	table := doc.Table{Caption: "Profiles", Unlabelled: true, Columns: []doc.Column{{Head: "service", Key: true}, {Head: "began"}, {Head: "length", Right: true}, {Head: "build"}}}
	for _, e := range slices.Backward(all) {
		dir, file := filepath.Split(e.Path)
		link := "flame/" + filepath.Base(dir) + "/" + file // names on disk are escaped
		table.Rows = append(table.Rows, doc.Row{Cells: []doc.Cell{
			{Drawing: doc.Markup(`<a href="` + html.EscapeString(link) + `">` + html.EscapeString(doc.Printable(e.Service)) + `</a>`)},
			{Text: e.Begun.UTC().Format("2006-01-02 15:04:05")}, {Text: e.Duration.Round(time.Second).String()}, {Text: e.Build, Code: true}}})
	}
	p.Add(table)
	return p
}

// sandboxed has the page run its own script without an origin, and ask for nothing: names in a
// profile come from programs of others.
const sandboxed = "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// draw makes the page of a profile.
func (k *kept) draw(f io.Reader, service string) (*bytes.Buffer, error) {
	k.one.Lock()
	defer k.one.Unlock()
	p, err := pprof.Read(f)
	if err != nil {
		return nil, err
	}
	window := cost.Window{Duration: p.Duration}
	window.Requests, window.Margin = p.Requests()
	b := cost.NewBill(p.Stacks, nil, window)
	b.Source = service + ", build " + p.BuildID() + ", " + p.Begun().UTC().Format("2 January 15:04:05") + " UTC"
	out := new(bytes.Buffer)
	return out, page.Write(out, b, p.Stacks)
}
