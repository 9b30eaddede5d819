package compat

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing/fstest"
	"time"
)

// standard are probes of the standard library's middlewares and handlers.
func standard() []Probe {
	return []Probe{
		{"ServeMux", "net/http", "PathValue, Pattern, 405 with Allow, redirects", probeServeMux},
		{"FileServer", "net/http", "whole, HEAD, ranges, If-Modified-Since", probeFileServer},
		{"TimeoutHandler", "net/http", "503 in time, and the slow handler's request left alone", probeTimeoutHandler},
		{"MaxBytesHandler", "net/http", "an error at the limit, by length and chunked", probeMaxBytes},
		{"CrossOriginProtection", "net/http", "403 for another site's POST", probeCrossOrigin},
		{"http.Error, Redirect, SetCookie", "net/http", "the answers that they are for", probeReplies},
	}
}

func probeServeMux(t *Trial) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{name}/files/{path...}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.PathValue("name"), " ", r.PathValue("path"), " ", r.Pattern)
	})
	mux.HandleFunc("GET host.example/{$}", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })
	mux.HandleFunc("GET /tree/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.RawQuery) })
	t.serve(mux)
	t.wants(t.get("/users/ann/files/a/b"), http.StatusOK, "ann a/b GET /users/{name}/files/{path...}")
	a := t.get("/users/a%2Fb/files/c%20d")
	t.must(a.status == http.StatusOK && strings.HasPrefix(a.body, "a/b c d "), "an encoded slash is taken for a path's: status %d", a.status)
	t.wants(t.get("/", "Host: host.example"), http.StatusOK, "host.example")
	t.wants(t.get("/tree/?a=1&b=%20"), http.StatusOK, "a=1&b=%20")
	a = t.send(t.request(http.MethodPut, "/tree/", "body"))
	t.must(a.status == http.StatusMethodNotAllowed, "status %d instead of 405", a.status)
	t.field(a, "Allow", "GET, HEAD")
	a = t.get("/tree")
	t.must(a.status == http.StatusMovedPermanently || a.status == http.StatusTemporaryRedirect, "status %d instead of a redirect", a.status)
	t.field(a, "Location", "/tree/")
	a = t.get("/users/../tree/")
	t.promised(a.status != http.StatusOK, "the handler sees another path than the client asked for, a clean one")
}

func probeFileServer(t *Trial) {
	changed := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	stamp := changed.Format(http.TimeFormat)
	data := strings.Repeat("0123456789abcdef", 64<<10)
	t.serve(http.FileServerFS(fstest.MapFS{
		"big.txt":        {Data: []byte(data), ModTime: changed},
		"sub/index.html": {Data: []byte("<p>index"), ModTime: changed},
	}))
	for range 2 {
		a := t.get("/big.txt")
		t.wants(a, http.StatusOK, data)
		t.field(a, "Content-Type", "text/plain; charset=utf-8")
		t.field(a, "Last-Modified", stamp)
		t.field(a, "Accept-Ranges", "bytes")
		t.field(a, "Content-Length", "1048576")
		a = t.send(t.request(http.MethodHead, "/big.txt", ""))
		t.wants(a, http.StatusOK, "")
		got := a.header.Get("Content-Length")
		t.promised(got == "1048576", "HEAD says Content-Length %q instead of the file's", got)
		a = t.get("/big.txt", "Range: bytes=1048570-")
		t.wants(a, http.StatusPartialContent, "abcdef")
		t.field(a, "Content-Range", "bytes 1048570-1048575/1048576")
		a = t.get("/big.txt", "Range: bytes=2000000-")
		t.must(a.status == http.StatusRequestedRangeNotSatisfiable, "status %d instead of 416", a.status)
		a = t.get("/big.txt", "Range: bytes=0-1,4-5")
		t.must(a.status == http.StatusPartialContent && strings.HasPrefix(a.header.Get("Content-Type"), "multipart/byteranges"), "two ranges come as status %d", a.status)
		a = t.get("/big.txt", "If-Modified-Since: "+stamp)
		t.wants(a, http.StatusNotModified, "")
		t.field(a, "Content-Type", "")
		a = t.get("/sub/")
		t.wants(a, http.StatusOK, "<p>index")
		t.field(a, "Content-Type", "text/html; charset=utf-8")
		t.must(t.get("/none").status == http.StatusNotFound, "a missing file is not 404")
	}
}

// probeTimeoutHandler lets the handler outlive its time, while other requests
// come on the connection that its request came on.
func probeTimeoutHandler(t *Trial) {
	seen := make(chan bool, 1)
	release := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fast" {
			w.Header().Set("X-Kind", "fast")
			io.WriteString(w, "fast")
			return
		}
		before := seal(r)
		<-release
		seen <- before == seal(r)
		io.WriteString(w, "too late")
	})
	t.serve(http.TimeoutHandler(h, 20*time.Millisecond, "out of time"))
	a := t.get("/fast")
	t.wants(a, http.StatusOK, "fast")
	t.field(a, "X-Kind", "fast")
	t.wants(t.get("/slow/first?n=1", "X-Word: first"), http.StatusServiceUnavailable, "out of time")
	for range 4 {
		t.wants(t.get("/fast", "X-Word: other", "X-More: more"), http.StatusOK, "fast")
	}
	close(release)
	same, ok := within(seen)
	t.need(ok, "the slow handler never ends")
	t.must(same, "the request of a handler that is still running changes under it")
}

func probeMaxBytes(t *Trial) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var over *http.MaxBytesError
		switch {
		case errors.As(err, &over):
			http.Error(w, fmt.Sprint("over ", over.Limit), http.StatusRequestEntityTooLarge)
		case err != nil:
			http.Error(w, "unreadable", http.StatusBadRequest)
		default:
			fmt.Fprint(w, len(b))
		}
	})
	t.serve(http.MaxBytesHandler(h, 1000))
	for _, chunked := range []bool{false, true} {
		for _, tt := range []struct {
			size, status int
			want         string
		}{{1000, http.StatusOK, "1000"}, {1001, http.StatusRequestEntityTooLarge, "over 1000\n"}, {100_000, http.StatusRequestEntityTooLarge, "over 1000\n"}} {
			for range 5 { // an answer before the body's end can get lost on its way
				r := t.request(http.MethodPost, "/", strings.Repeat("x", tt.size))
				if chunked {
					r.ContentLength = -1
				}
				t.wants(t.send(r), tt.status, tt.want)
			}
		}
	}
}

func probeCrossOrigin(t *Trial) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") })
	t.serve(http.NewCrossOriginProtection().Handler(h))
	for range 2 {
		a := t.send(t.request(http.MethodPost, "/", "body", "Sec-Fetch-Site: cross-site"))
		t.must(a.status == http.StatusForbidden, "status %d instead of 403 for another site's POST", a.status)
		a = t.send(t.request(http.MethodPost, "/", "body", "Origin: https://evil.example"))
		t.must(a.status == http.StatusForbidden, "status %d instead of 403 for another origin's POST", a.status)
		t.wants(t.send(t.request(http.MethodPost, "/", "body", "Sec-Fetch-Site: same-origin")), http.StatusOK, "done")
		t.wants(t.send(t.request(http.MethodPost, "/", "body", "Origin: "+t.url)), http.StatusOK, "done")
		t.wants(t.get("/", "Sec-Fetch-Site: cross-site"), http.StatusOK, "done")
	}
}

func probeReplies(t *Trial) {
	mux := http.NewServeMux()
	mux.HandleFunc("/error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusConflict) })
	mux.Handle("/away", http.RedirectHandler("/there?a=1", http.StatusSeeOther))
	mux.HandleFunc("/cookies", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1", HttpOnly: true})
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "2", SameSite: http.SameSiteStrictMode})
		fmt.Fprint(w, r.CookiesNamed("x"), " ", r.Header["X-Many"])
	})
	mux.HandleFunc("/form", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.FormValue("q"), r.PostFormValue("p")) })
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	t.serve(mux)
	a := t.get("/error")
	t.wants(a, http.StatusConflict, "no\n")
	t.field(a, "Content-Type", "text/plain; charset=utf-8")
	t.field(a, "X-Content-Type-Options", "nosniff")
	a = t.get("/away")
	t.must(a.status == http.StatusSeeOther, "status %d instead of 303", a.status)
	t.field(a, "Location", "/there?a=1")
	a = t.get("/cookies", "Cookie: x=7; y=8", "X-Many: one", "X-Many: two")
	t.wants(a, http.StatusOK, "[x=7] [one two]")
	t.field(a, "Set-Cookie", "a=1; HttpOnly, b=2; SameSite=Strict")
	a = t.send(t.request(http.MethodPost, "/form?q=query", "p=post", "Content-Type: application/x-www-form-urlencoded"))
	t.wants(a, http.StatusOK, "querypost")
	t.wants(t.get("/empty"), http.StatusNoContent, "")
}
