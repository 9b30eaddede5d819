package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/CAFxX/httpcompression"
	"github.com/andybalholm/brotli"
	gingzip "github.com/gin-contrib/gzip"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tarehq/tare/arms/pages"
	"github.com/tarehq/tare/serve/compress"
	"github.com/tarehq/tare/serve/middleware/static"
)

// newCompressed returns what answers with the pages. Middlewares are set up as their
// authors' documentation shows, but for the level.
func newCompressed(s settings, dir string, all []pages.Page) (http.Handler, error) {
	answers := newPlain(all)
	switch s.by {
	case "none":
		return answers, nil
	case "ours":
		return newOurs(s, answers)
	case "chi":
		return middleware.Compress(s.level)(answers), nil
	case "gzhttp":
		mw, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(s.level), gzhttp.EnableZstd(false))
		if err != nil {
			return nil, err
		}
		return mw(answers), nil
	case "httpcompression":
		mw, err := httpcompression.Adapter(httpcompression.GzipCompressionLevel(s.level), httpcompression.MinSize(httpcompression.DefaultMinSize))
		if err != nil {
			return nil, err
		}
		return mw(answers), nil
	case "gin":
		gin.SetMode(gin.ReleaseMode)
		g := gin.New()
		g.Use(gingzip.Gzip(s.level))
		g.GET("/*path", gin.WrapH(answers))
		return g, nil
	case "files", "precompressed":
		return newFiles(s, dir, all)
	}
	return nil, fmt.Errorf("compressed by %q: see -help", s.by)
}

func newOurs(s settings, answers http.Handler) (http.Handler, error) {
	o := compress.Options{Encodings: []compress.Encoding{compress.Encoding(s.encoding)}}
	if s.level >= 0 {
		o.Level = func(compress.Encoding, string) int { return s.level }
	}
	mw, err := compress.New(o)
	if err != nil {
		return nil, err
	}
	return mw(answers), nil
}

// newFiles serves the pages from files, with compressed siblings where that is asked.
func newFiles(s settings, dir string, all []pages.Page) (http.Handler, error) {
	if s.by == "precompressed" {
		for _, p := range all {
			packed, err := pack(s.encoding, p.Body)
			if err != nil {
				return nil, err
			}
			if len(packed) < len(p.Body) {
				all = append(all[:len(all):len(all)], pages.Page{Path: p.Path + endings[s.encoding], Body: packed})
			}
		}
	}
	if err := pages.Write(dir, all); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	mw, err := static.New(static.Options{Files: root.FS(), NoSiblings: s.by == "files"})
	if err != nil {
		return nil, err
	}
	return mw(http.NotFoundHandler()), nil
}

var endings = map[string]string{"gzip": ".gz", "br": ".br", "zstd": ".zst"}

// largest is up to how many bytes a page is compressed at the encoder's last level: before
// a trial there is no time for more.
const largest = 64 << 10

// pack compresses as well as the encoding can.
func pack(encoding string, body []byte) ([]byte, error) {
	if len(body) > largest {
		return body, nil
	}
	var to bytes.Buffer
	var w io.WriteCloser
	var err error
	switch encoding {
	case "gzip":
		w, err = gzip.NewWriterLevel(&to, gzip.BestCompression)
	case "br":
		w = brotli.NewWriterLevel(&to, brotli.BestCompression)
	case "zstd":
		w, err = zstd.NewWriter(&to, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	default:
		err = fmt.Errorf("encoding %q: there are gzip, br and zstd", encoding)
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err = w.Close()
	return to.Bytes(), err
}

// unpack returns what a body is without its encoding.
func unpack(encoding string, body io.Reader) ([]byte, error) {
	switch encoding {
	case "":
	case "gzip":
		r, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = r
	case "br":
		body = brotli.NewReader(body)
	case "zstd":
		r, err := zstd.NewReader(body)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		body = r
	default:
		return nil, fmt.Errorf("encoding %q was not asked for", encoding)
	}
	return io.ReadAll(body)
}
