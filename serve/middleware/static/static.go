// Package static serves files.
//
// A file that is there is answered; all else passes on to the next handler, also what has
// another method than GET and HEAD. Ranges and conditional requests are those of
// http.ServeContent, but that a Range counts for GET alone, and in bytes (RFC 9110, section 14.2).
// A directory is its index, and never a list.
//
// What is not served, whatever the file system has: names with a part that begins with a
// dot (but /.well-known), paths that are not clean, slashes and backslashes that come
// encoded, and what is not a regular file. Windows may know such a file by a second, short name, and
// serves it by that. os.Root keeps symbolic links from leading out of a directory, and os.DirFS does
// not: see the example.
//
// An ETag is the SHA-256 of the content, computed once the file is some seconds old. Time
// and size alone would repeat where a build gives all files the same time. Files above
// Options.Hash have these.
//
// Small files are kept in memory with their ETag, and are looked at and not opened while
// they are as they were. With Options.Fresh even the look is spared for a while.
//
// Siblings with .br, .zst or .gz at the end of the name are sent to those who accept
// them, each with an ETag of its own, if they are not older than the file.
//
// A file that is replaced (renamed over) while it is sent goes on as it was. One that is
// cut short in place has the connection cut, so that it does not look whole.
//
// Note: files are not mapped into memory. A map of a file that is cut short ends the process
// when it is read, and bodies that are kept cost as little. Nor is an ETag the CRC-32 of the
// first MiB, which misses changes behind that. Study static weighs both ways.
//
// Place: inside of what logs, limits and authenticates. Files for everybody have a chain
// of their own.
//
// Cost: a look at the file and at each sibling that the client accepts, which are system
// calls unless Options.Fresh is set. Of files that are not kept the kernel sends what it can
// by itself.
package static

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	// Files are served. For a directory: os.OpenRoot, and the FS of that. Where files cannot be
	// sought in, as in an archive, each request reads one that is not kept into memory: bound the
	// requests in flight.
	Files fs.FS
	// Index is the file that stands for its directory. Empty: index.html; "-": none.
	Index string
	// Cache returns the Cache-Control of a file, by its name in Files. Nil: none, so that
	// browsers ask by the ETag as often as they like.
	Cache func(name string) string
	// Hash is up to how many bytes a file's ETag is its SHA-256. 0: 16 MiB; negative: none.
	Hash int64
	// Keep is how many bytes of files of at most 64 KiB, which have a hash, are kept in
	// memory. 0: 16 MiB; negative: none. Files that come when it is full are not kept.
	Keep int64
	// NoSiblings looks for no compressed siblings.
	NoSiblings bool
	// Fresh is for how long what a look at a name found is believed: a file as it was, or
	// none. So long a change may go unseen, one in place or by a rename. 0: each request
	// looks.
	Fresh time.Duration
}

const (
	defaultHash = 16 << 20
	defaultKeep = 16 << 20
	largestKept = 64 << 10
)

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
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.Fresh < 0 {
		return nil, errors.New("static: Options.Fresh is negative; for a look at each request leave it out")
	}
	s := &server{o: o, sights: newSights(o.Files, o.Fresh), tags: map[string]tag{}, types: map[string][]string{}}
	return func(next http.Handler) http.Handler { return &handler{s, next} }, nil
}

// server is what all handlers of one middleware share.
type server struct {
	o       Options
	sights  *sights
	hashing sync.Mutex // one at a time
	mu      sync.Mutex
	// tags are the hashes known, by the file's name.
	tags map[string]tag
	kept int64 // bytes of their bodies
	// types are the values of Content-Type known, by the ending of a file that is there.
	types map[string][]string
}

// tag is the ETag of a file as it was at a time.
type tag struct {
	info fs.FileInfo
	nth  uint64 // of a sight that is known to be of the same
	body []byte // nil: not kept
	// of answers with the body: Content-Length, and Last-Modified, nil where the time is not known
	length, modified []string
	etags            [2][]string // of the file as it is, and of one that is sent as a sibling
}

// of reports whether the tag is that of the file. Where the system tells files apart, one
// that was renamed over another is not the same, even if it has the other's time.
func (t *tag) of(v version) bool {
	if t.nth != 0 && t.nth == v.nth {
		return true
	}
	info := v.info
	told := os.SameFile(info, info)
	return t.info.Size() == info.Size() && t.info.Mode() == info.Mode() && t.info.ModTime().Equal(info.ModTime()) && (!told || os.SameFile(t.info, info))
}

// settled is how old a file is whose hash is kept. Two writes within a tick of the file
// system's clock (10 ms, or 2 s on FAT) give the same time.
const settled = 3 * time.Second

// mostTags and mostTypes bound what is kept of files and of their endings. Clients cannot
// add files.
const (
	mostTags  = 1 << 16
	mostTypes = 1 << 10
)

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
		chain.After("auth", "files would be served to those whom it refuses"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := nameOf(r)
	if !ok || !h.s.serve(w, r, name, h.s.o.Fresh > 0) {
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

// serve reports whether it answered. What earlier looks found is believed or not.
func (s *server) serve(w http.ResponseWriter, r *http.Request, name string, believe bool) bool {
	file, directory := strings.CutSuffix(name, "/")
	if directory {
		if s.o.Index == "-" {
			return false
		}
		file = strings.TrimPrefix(name, "/") + s.o.Index
	}
	at := s.sights.look(file, believe)
	switch {
	case at.info == nil:
		return false
	case at.info.IsDir():
		return !directory && s.redirect(w, r, file)
	case !at.info.Mode().IsRegular():
		return false
	}
	from := version{sight: at}
	if !s.o.NoSiblings {
		from = s.sibling(from, r.Header["Accept-Encoding"], believe)
	}
	t, ok := s.known(from)
	kept := ok && t.body != nil
	if believe && !kept { // it will be opened, and is sent as it is then
		return s.serve(w, r, name, false)
	}
	if !kept {
		return s.send(w, r, file, from)
	}
	s.describe(w.Header(), file, from)
	t.sendKept(w, r, from)
	return true
}

// describe sets the fields that the version of a file has, whatever becomes of the request.
func (s *server) describe(header http.Header, name string, from version) {
	if s.o.Cache != nil {
		if value := s.o.Cache(name); value != "" {
			header.Set("Cache-Control", value)
		}
	}
	if !s.o.NoSiblings {
		addVary(header)
	}
	contentType := s.typeOf(path.Ext(name))
	if from.encoding != "" {
		header.Set("Content-Encoding", from.encoding)
		if contentType == nil {
			contentType = octets
		}
	}
	if contentType != nil {
		header["Content-Type"] = contentType[:1:1] // of no more room: what adds to it makes its own
	}
}

var octets, vary = []string{"application/octet-stream"}, []string{"Accept-Encoding"}

func addVary(header http.Header) {
	if header["Vary"] == nil {
		header["Vary"] = vary[:1:1]
		return
	}
	header.Add("Vary", vary[0])
}

// typeOf returns the Content-Type of an ending, nil if it is not known.
func (s *server) typeOf(ending string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.types[ending]
	if ok {
		return known
	}
	if is := mime.TypeByExtension(ending); is != "" {
		known = []string{is}
	}
	if len(s.types) < mostTypes {
		s.types[strings.Clone(ending)] = known
	}
	return known
}

// redirect adds the slash to a directory that has an index. It stays on this host, though
// the path begins with two slashes.
func (s *server) redirect(w http.ResponseWriter, r *http.Request, name string) bool {
	if s.o.Index == "-" {
		return false
	}
	if index := s.sights.look(name+"/"+s.o.Index, true); index.info == nil || !index.info.Mode().IsRegular() {
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

// version is what is sent of a file: itself, or a compressed sibling.
type version struct {
	sight
	encoding string // empty: as it is
}

// sibling returns the version to send of a file. Of those that the client likes best the
// first that is there and not older is taken.
func (s *server) sibling(plain version, accepted []string, believe bool) version {
	if len(accepted) == 0 {
		return plain
	}
	offers := encodings
	for {
		e := accept.Encoding(accepted, offers)
		if e == "" {
			return plain
		}
		other := s.sights.look(plain.name+endings[e], believe)
		if other.info != nil && other.info.Mode().IsRegular() && !other.info.ModTime().Before(plain.info.ModTime()) {
			return version{other, e}
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

// send answers with the version of a file as it is once it is open. It reports false if that was
// taken away since it was looked at.
func (s *server) send(w http.ResponseWriter, r *http.Request, name string, v version) bool {
	f, err := s.o.Files.Open(v.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		fail(w)
		return true
	}
	defer f.Close()
	v.nth = 0
	v.info, err = f.Stat()
	if err != nil || !v.info.Mode().IsRegular() {
		fail(w)
		return true
	}
	content, err := seekable(f, v.info)
	if err != nil {
		fail(w)
		return true
	}
	t, err := s.tagOf(v, content)
	if err != nil {
		fail(w)
		return true
	}
	s.describe(w.Header(), name, v)
	t.send(w, r, v, content)
	return true
}

// send answers with the content, under the tag.
func (t tag) send(w http.ResponseWriter, r *http.Request, v version, content io.ReadSeeker) {
	w.Header()["Etag"] = t.etag(v)
	if v.encoding != "" {
		w.Header().Set("Content-Length", strconv.FormatInt(v.info.Size(), 10)) // ServeContent leaves it to compressors
		if len(r.Header["If-Match"])+len(r.Header["If-Unmodified-Since"]) > 0 {
			w = failable{w}
		}
	}
	if field := r.Header.Get("Range"); field != "" && !(r.Method == http.MethodGet && v.info.Size() > 0 && isRange(field)) {
		r = r.WithContext(r.Context()) // a copy
		r.Header = maps.Clone(r.Header)
		delete(r.Header, "Range")
	}
	http.ServeContent(w, r, v.name, v.info.ModTime(), content)
}

// failable is the writer of an answer that may be 412, which has no body: ServeContent leaves the
// fields there that describe one.
type failable struct{ http.ResponseWriter }

func (w failable) WriteHeader(status int) {
	if status == http.StatusPreconditionFailed {
		delete(w.Header(), "Content-Encoding")
		delete(w.Header(), "Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

// isRange reports whether a Range counts: other units must be ignored (RFC 9110, section 14.2).
// ServeContent would refuse these, and answer one of the last 0 bytes by what is no Content-Range.
func isRange(field string) bool {
	set, ok := strings.CutPrefix(field, "bytes=")
	for part := range strings.SplitSeq(set, ",") {
		last, isLast := strings.CutPrefix(strings.Trim(part, " \t"), "-")
		ok = ok && !(isLast && strings.Trim(last, " \t0") == "")
	}
	return ok
}

// newTag returns the tag of a file of that name.
func newTag(name, value string) tag {
	t := tag{etags: [2][]string{{`"` + value + `"`}}}
	for encoding, ending := range endings {
		if strings.HasSuffix(name, ending) {
			t.etags[1] = []string{`"` + value + "-" + encoding + `"`}
		}
	}
	return t
}

// etag returns the value of ETag for a version.
func (t *tag) etag(v version) []string {
	if v.encoding != "" {
		return t.etags[1][:1:1]
	}
	return t.etags[0][:1:1]
}

var ranges = []string{"bytes"}

// sendKept answers with the body that is kept. Requests for a part, or on a condition, go
// by ServeContent.
func (t tag) sendKept(w http.ResponseWriter, r *http.Request, v version) {
	h := w.Header()
	if r.Method != http.MethodGet || len(h["Content-Type"]) == 0 || asksMore(r.Header) {
		t.send(w, r, v, bytes.NewReader(t.body))
		return
	}
	h["Etag"], h["Accept-Ranges"], h["Content-Length"] = t.etag(v), ranges[:1:1], t.length[:1:1]
	if t.modified != nil {
		h["Last-Modified"] = t.modified[:1:1]
	}
	_, _ = w.Write(t.body) // fails when the client has gone
}

// asksMore reports whether a request asks for a part or has a condition.
func asksMore(h http.Header) bool {
	for _, name := range []string{"Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// fail answers for a file that is there and cannot be read.
func fail(w http.ResponseWriter) {
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

// known returns the tag of a file, if it is still that of the file.
func (s *server) known(v version) (tag, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tags[v.name]
	if !ok || !t.of(v) {
		return tag{}, false
	}
	if t.nth != v.nth && v.nth != 0 { // until the next look this one is enough
		t.nth = v.nth
		s.tags[v.name] = t
	}
	return t, true
}

// tagOf returns the tag of an open file.
func (s *server) tagOf(v version, content io.ReadSeeker) (tag, error) {
	size, changed := v.info.Size(), v.info.ModTime()
	if s.o.Hash < 0 || size > s.o.Hash {
		return newTag(v.name, strconv.FormatInt(changed.UnixNano(), 36)+"-"+strconv.FormatInt(size, 36)), nil
	}
	if t, ok := s.known(v); ok {
		return t, nil
	}
	s.hashing.Lock()
	defer s.hashing.Unlock()
	if t, ok := s.known(v); ok { // another request was faster
		return t, nil
	}
	hash, body := sha256.New(), new(bytes.Buffer)
	to := io.Writer(hash)
	if size <= largestKept {
		to = io.MultiWriter(hash, body)
	}
	if _, err := io.Copy(to, io.LimitReader(content, s.o.Hash)); err != nil {
		return tag{}, err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return tag{}, err
	}
	t := newTag(v.name, base64.RawURLEncoding.EncodeToString(hash.Sum(nil)))
	t.info = v.info
	if age := time.Since(changed); age > settled || age < 0 {
		if int64(body.Len()) == size { // else it was changed meanwhile, or is too large
			t.body, t.length = body.Bytes(), []string{strconv.FormatInt(size, 10)}
		}
		if !changed.IsZero() && !changed.Equal(time.Unix(0, 0)) { // as ServeContent has it
			t.modified = []string{changed.UTC().Format(http.TimeFormat)}
		}
		s.remember(v.name, t)
	}
	return t, nil
}

// remember keeps the tag, and the body if there is room for it.
func (s *server) remember(name string, t tag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tags) >= mostTags {
		clear(s.tags)
		s.kept = 0
	}
	s.kept -= int64(len(s.tags[name].body))
	if s.kept+int64(len(t.body)) > s.o.Keep {
		t.body = nil
	}
	s.kept += int64(len(t.body))
	s.tags[strings.Clone(name)] = t // the request's memory may be used again
}
