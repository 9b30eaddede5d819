// Package static serves files.
//
// A file that is there is answered; all else passes on to the next handler, also what has
// another method than GET and HEAD. Ranges and conditional requests are those of
// http.ServeContent. A directory is its index, and never a list.
//
// What is not served, whatever the file system has: names with a part that begins with a
// dot (but /.well-known), paths that are not clean, slashes and backslashes that come
// encoded, and what is not a regular file. os.Root keeps symbolic links from leading out
// of a directory, and os.DirFS does not: see the example.
//
// An ETag is the SHA-256 of the content, computed once the file is some seconds old. Time and size alone would repeat
// where a build gives all files the same time. Files above Options.Hash have these.
//
// Siblings with .br, .zst or .gz at the end of the name are sent to those who accept
// them, each with an ETag of its own, if they are not older than the file.
//
// A file that is replaced (renamed over) while it is sent goes on as it was. One that is
// cut short in place has the connection cut, so that it does not look whole.
//
// Place: inside of what logs, limits and authenticates. Files for everybody have a chain
// of their own.
//
// Cost: a look-up of the file and of each sibling that the client accepts. What the
// kernel can send by itself it does.
package static

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/accept"
)

// Options of the middleware. Files must be set.
type Options struct {
	// Files are served. For a directory: os.OpenRoot, and the FS of that.
	Files fs.FS
	// Index is the file that stands for its directory. Empty: index.html; "-": none.
	Index string
	// Cache returns the Cache-Control of a file, by its name in Files. Nil: none, so that
	// browsers ask by the ETag as often as they like.
	Cache func(name string) string
	// Hash is up to how many bytes a file's ETag is its SHA-256. 0: 16 MiB; negative: none.
	Hash int64
	// NoSiblings looks for no compressed siblings.
	NoSiblings bool
}

const defaultHash = 16 << 20

// New returns the middleware, or an error if Options.Files is not set.
func New(o Options) (func(http.Handler) http.Handler, error) {
	if o.Files == nil {
		return nil, errors.New("static: Options.Files is not set: what is served?")
	}
	if o.Index == "" {
		o.Index = "index.html"
	}
	if o.Index != "-" && (!fs.ValidPath(o.Index) || strings.Contains(o.Index, "/")) {
		return nil, fmt.Errorf("static: Options.Index is %q, which is not the name of a file", o.Index)
	}
	if o.Hash == 0 {
		o.Hash = defaultHash
	}
	s := &server{o: o, tags: map[string]tag{}}
	return func(next http.Handler) http.Handler { return &handler{s, next} }, nil
}

// server is what all handlers of one middleware share.
type server struct {
	o  Options
	mu sync.Mutex // held also while a hash is computed: one at a time
	// tags are the hashes known, by the file's name.
	tags map[string]tag
}

// tag is the ETag of a file as it was at a time.
type tag struct {
	info  fs.FileInfo
	value string
}

// of reports whether the tag is that of the file. Where the system tells files apart, one
// that was renamed over another is not the same, even if it has the other's time.
func (t *tag) of(info fs.FileInfo) bool {
	told := os.SameFile(info, info)
	return t.info.Size() == info.Size() && t.info.ModTime().Equal(info.ModTime()) && (!told || os.SameFile(t.info, info))
}

// settled is how old a file is whose hash is kept. Two writes within a tick of the file
// system's clock (10 ms, or 2 s on FAT) give the same time.
const settled = 3 * time.Second

// mostTags bounds the hashes kept. Clients cannot add files.
const mostTags = 1 << 16

type handler struct {
	s    *server
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "static", Rules: []chain.Rule{
		chain.After("accesslog", "requests for files would not be logged"),
		chain.After("metrics", "requests for files would not be counted"),
		chain.After("secure", "files would lack the fields"),
		chain.After("limit", "requests for files would be free of the limit"),
		chain.After("auth", "files would be served to those whom it does not let pass"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := nameOf(r)
	if !ok || !h.s.serve(w, r, name) {
		h.next.ServeHTTP(w, r)
	}
}

// nameOf returns the name in a file system that a request is for: of a directory with a
// slash at its end, and of the root a slash alone.
func nameOf(r *http.Request) (name string, ok bool) {
	p := r.URL.Path
	if r.Method != http.MethodGet && r.Method != http.MethodHead || !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "\\\x00") {
		return "", false
	}
	if raw := r.URL.RawPath; raw != "" && strings.Contains(strings.ToLower(raw), "%2f") {
		return "", false
	}
	name = strings.TrimSuffix(p[1:], "/")
	if name == "" {
		return "/", p == "/"
	}
	if !fs.ValidPath(name) || name == "." {
		return "", false
	}
	for i, part := 0, ""; i <= len(name); i += len(part) + 1 {
		part, _, _ = strings.Cut(name[i:], "/")
		if part[0] == '.' && !(i == 0 && part == ".well-known") {
			return "", false
		}
	}
	return p[1:], true
}

// serve reports whether it answered.
func (s *server) serve(w http.ResponseWriter, r *http.Request, name string) bool {
	directory := strings.HasSuffix(name, "/")
	if directory {
		if s.o.Index == "-" {
			return false
		}
		name = strings.TrimPrefix(name, "/") + s.o.Index
	}
	info, err := fs.Stat(s.o.Files, name)
	switch {
	case err != nil:
		return false
	case info.IsDir():
		return !directory && s.redirect(w, r, name)
	case !info.Mode().IsRegular():
		return false
	}
	header := w.Header()
	if s.o.Cache != nil {
		if value := s.o.Cache(name); value != "" {
			header.Set("Cache-Control", value)
		}
	}
	contentType := mime.TypeByExtension(path.Ext(name))
	from, encoding := name, ""
	if !s.o.NoSiblings {
		header.Add("Vary", "Accept-Encoding")
		from, encoding = s.sibling(name, info, r.Header["Accept-Encoding"])
	}
	if encoding != "" {
		header.Set("Content-Encoding", encoding)
		if contentType == "" {
			contentType = "application/octet-stream"
		}
	}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	s.send(w, r, from, encoding)
	return true
}

// redirect adds the slash to a directory that has an index. It stays on this host, though
// the path begins with two slashes.
func (s *server) redirect(w http.ResponseWriter, r *http.Request, name string) bool {
	if s.o.Index == "-" {
		return false
	}
	if info, err := fs.Stat(s.o.Files, name+"/"+s.o.Index); err != nil || !info.Mode().IsRegular() {
		return false
	}
	to := "./" + path.Base(r.URL.EscapedPath()) + "/"
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusMovedPermanently)
	return true
}

var (
	encodings = []string{"br", "zstd", "gzip"}
	endings   = map[string]string{"br": ".br", "zstd": ".zst", "gzip": ".gz"}
)

// sibling returns the file to send for one, and how it is encoded; empty: as it is. Of
// those that the client likes best the first that is there and not older is taken.
func (s *server) sibling(name string, info fs.FileInfo, accepted []string) (from, encoding string) {
	if len(accepted) == 0 {
		return name, ""
	}
	offers := encodings
	for {
		e := accept.Encoding(accepted, offers)
		if e == "" {
			return name, ""
		}
		other, err := fs.Stat(s.o.Files, name+endings[e])
		if err == nil && other.Mode().IsRegular() && !other.ModTime().Before(info.ModTime()) {
			return name + endings[e], e
		}
		offers = without(offers, e)
	}
}

func without(offers []string, e string) []string {
	left := make([]string, 0, len(offers))
	for _, o := range offers {
		if o != e {
			left = append(left, o)
		}
	}
	return left
}

// send answers with the file as it is once it is open.
func (s *server) send(w http.ResponseWriter, r *http.Request, name, encoding string) {
	f, err := s.o.Files.Open(name)
	if err != nil {
		fail(w)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		fail(w)
		return
	}
	content, err := seekable(f, info)
	if err != nil {
		fail(w)
		return
	}
	value, err := s.tagOf(name, info, content)
	if err != nil {
		fail(w)
		return
	}
	if encoding != "" {
		value += "-" + encoding
		w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10)) // ServeContent leaves it to compressors
	}
	w.Header().Set("Etag", `"`+value+`"`)
	http.ServeContent(w, r, name, info.ModTime(), content)
}

// fail answers for a file that is there and cannot be read.
func fail(w http.ResponseWriter) {
	for _, field := range []string{"Cache-Control", "Content-Encoding", "Content-Type"} {
		w.Header().Del(field)
	}
	http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
}

// mostRead bounds what is read of a file into memory.
const mostRead = 64 << 20

// seekable returns the file itself, or its content where the file system cannot seek, as
// in archives.
func seekable(f fs.File, info fs.FileInfo) (io.ReadSeeker, error) {
	if s, ok := f.(io.ReadSeeker); ok {
		return s, nil
	}
	if info.Size() > mostRead {
		return nil, fmt.Errorf("static: %s has %d bytes and cannot be sought in", info.Name(), info.Size())
	}
	b, err := io.ReadAll(io.LimitReader(f, mostRead))
	return bytes.NewReader(b), err
}

// tagOf returns what the ETag of an open file says.
func (s *server) tagOf(name string, info fs.FileInfo, content io.ReadSeeker) (string, error) {
	if s.o.Hash < 0 || info.Size() > s.o.Hash {
		return strconv.FormatInt(info.ModTime().UnixNano(), 36) + "-" + strconv.FormatInt(info.Size(), 36), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.tags[name]; ok && t.of(info) {
		return t.value, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(content, s.o.Hash)); err != nil {
		return "", err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	value := base64.RawURLEncoding.EncodeToString(hash.Sum(nil))
	if age := time.Since(info.ModTime()); age > settled || age < 0 {
		if len(s.tags) >= mostTags {
			clear(s.tags)
		}
		s.tags[name] = tag{info, value}
	}
	return value, nil
}
