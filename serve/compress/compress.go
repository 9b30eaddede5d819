// Package compress compresses answers by zstd, Brotli or gzip, whichever the client
// prefers (RFC 9110, section 12.5.3).
//
// Not compressed is what would not gain or must not be changed: types that are compressed
// already, small bodies, parts of a range, answers with a digest (also one that Trailer announces),
// an encoding or no-transform, and requests for an upgrade, the only ones whose connection can be
// hijacked. That holds whatever the client accepts, so also for identity;q=0. An answer to HEAD has
// the fields of that to GET (RFC 9110, section 9.3.2), but no Content-Length where that would be
// compressed.
//
// A body of which the length is not known is held back until it has Options.Smallest
// bytes, the handler flushes or returns. From then on each flush goes through the encoder
// to the client, and nothing waits for more than the encoder does. Where a handler writes less
// than its Content-Length said, the connection is cut, as it is without the middleware.
//
// A compressed answer's ETag is weak, as it has the same meaning and not the same bytes,
// and so is that of a 304 to a client that asks with a weak one. Vary has Accept-Encoding
// wherever the encoding could have decided, also on 206 and 304.
//
// Who can choose a part of an answer, and sees its size, can guess a secret in the same
// answer (BREACH). Mask such secrets, or leave the middleware out there.
//
// Encoders are pooled. An encoder takes about 100 kB (gzip) to 1 MB (Brotli, zstd) while
// an answer lasts.
//
// Place: inside of recovery, accesslog and metrics, which see what is sent.
//
// The package is a module of its own, as it needs the encoders of klauspost/compress and
// andybalholm/brotli.
package compress

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/internal/accept"
)

// Encoding is a content coding of HTTP.
type Encoding string

// The encodings.
const (
	Zstd   Encoding = "zstd"
	Brotli Encoding = "br"
	Gzip   Encoding = "gzip"
)

// Options of the middleware. The zero value suits text of all kinds.
type Options struct {
	// Encodings are offered. Of those that a client likes equally the first is taken. Nil:
	// Zstd, Brotli, Gzip.
	Encodings []Encoding
	// Level returns the encoder's level for a media type, such as text/html: gzip has 1 to
	// 9, Brotli 0 to 11, zstd 1 to 4. Others are brought into that range. Nil: gzip 5,
	// Brotli 4, zstd 1.
	Level func(e Encoding, mediaType string) int
	// Smallest is how long a body is at least. 0: 1,024; negative: a byte.
	Smallest int
	// Types are the media types that are compressed, with * for all of a kind, as in
	// text/*, or with a suffix, as in */*+json. Nil: what is text, JSON, XML, JavaScript,
	// WebAssembly, SVG, or a font that is not compressed.
	Types []string
}

const defaultSmallest = 1024

var defaultTypes = []string{"text/*", "*/*+json", "*/*+xml", "*/*+text", "application/json", "application/xml", "application/javascript",
	"application/x-javascript", "application/manifest+json", "application/x-ndjson", "application/wasm", "application/graphql",
	"application/vnd.ms-fontobject", "application/yaml", "font/ttf", "font/otf", "image/bmp", "image/x-icon", "image/vnd.microsoft.icon"}

// New returns the middleware, or an error that says which option is wrong.
func New(o Options) (func(http.Handler) http.Handler, error) {
	if o.Encodings == nil {
		o.Encodings = []Encoding{Zstd, Brotli, Gzip}
	}
	for i, e := range o.Encodings {
		if _, ok := kinds[e]; !ok || slices.Contains(o.Encodings[:i], e) {
			return nil, fmt.Errorf("compress: Options.Encodings has %q, which is not known or there twice", e)
		}
	}
	if o.Smallest == 0 {
		o.Smallest = defaultSmallest
	}
	o.Smallest = max(o.Smallest, 1)
	if o.Types == nil {
		o.Types = defaultTypes
	}
	types := map[string]bool{}
	for _, t := range o.Types {
		kind, sub, ok := strings.Cut(t, "/")
		if !ok || kind == "" || sub == "" || t != strings.ToLower(t) || strings.ContainsAny(t, "; ,") || strings.Contains(strings.TrimPrefix(sub, "*+"), "*") && sub != "*" {
			return nil, fmt.Errorf("compress: Options.Types has %q: a type is in lower case, as in text/html, text/* or */*+json", t)
		}
		types[t] = true
	}
	if o.Level == nil {
		o.Level = func(e Encoding, _ string) int { return kinds[e].usual }
	}
	c := &compressor{o: o, types: types}
	c.known.Store(&map[string]media{})
	return func(next http.Handler) http.Handler { return &handler{c, next} }, nil
}

// compressor is what all handlers of one middleware share.
type compressor struct {
	o     Options
	types map[string]bool
	known atomic.Pointer[map[string]media] // by the value of Content-Type
}

// media is what a Content-Type says.
type media struct {
	name       string // the media type
	compressed bool   // it is one of those that are
}

// What is remembered is bounded.
const (
	mostTypes   = 64
	longestType = 128 // bytes
)

// mediaOf reads a Content-Type. What a service answers with is remembered.
func (c *compressor) mediaOf(contentType string) media {
	known := c.known.Load()
	if m, ok := (*known)[contentType]; ok {
		return m
	}
	name := mediaTypeOf(contentType)
	m := media{name, c.compresses(name)}
	if len(*known) < mostTypes && len(contentType) <= longestType {
		more := maps.Clone(*known)
		more[strings.Clone(contentType)] = media{strings.Clone(name), m.compressed}
		c.known.CompareAndSwap(known, &more)
	}
	return m
}

// compresses reports whether the media type is one of those that are compressed.
func (c *compressor) compresses(mediaType string) bool {
	if c.types[mediaType] {
		return true
	}
	kind, sub, _ := strings.Cut(mediaType, "/")
	if c.types[kind+"/*"] {
		return true
	}
	i := strings.LastIndexByte(sub, '+')
	return i >= 0 && c.types["*/*"+sub[i:]]
}

// mediaTypeOf returns a Content-Type without its parameters. They do not matter here, and
// mime.ParseMediaType makes a map of them.
func mediaTypeOf(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

type handler struct {
	c    *compressor
	next http.Handler
}

// ChainLayer says where the middleware may stand.
func (h *handler) ChainLayer() chain.Layer {
	return chain.Layer{Name: "compress", Rules: []chain.Rule{
		chain.Once("answers would be compressed by the inner one alone"),
		chain.After("accesslog", "the log would have sizes that were not sent"),
		chain.After("metrics", "it would count bytes that were not sent"),
	}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header["Upgrade"] != nil || r.Method == http.MethodConnect {
		h.next.ServeHTTP(w, r)
		return
	}
	cw := newWriter(w, h.c, r, accept.Encoding(r.Header["Accept-Encoding"], h.c.o.Encodings))
	returned := false
	defer func() {
		if !returned { // a panic: what was answered must not look whole
			cw.abort()
		}
	}()
	h.next.ServeHTTP(cw, r)
	returned = true
	if !cw.close() {
		panic(http.ErrAbortHandler)
	}
}
