//tare:module github.com/klauspost/compress

// Command compression answers the pages of package pages: as they are, compressed by one
// middleware or another, or from files that were compressed before.
//
//	GET /16k.html and so on      a page
//	GET /10/16k.html and so on   the same by a line of 10 Mbit/s
//
// The first answer to each path is unpacked and compared with the page. One that differs
// becomes an error, so that the trial does not count.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/pages"
)

// settings are what the flags say.
type settings struct {
	by, encoding string
	level        int
}

func main() {
	var s settings
	flag.StringVar(&s.by, "by", "none", "`what` compresses: none, ours, chi, gin, gzhttp, httpcompression; or files, precompressed")
	flag.StringVar(&s.encoding, "encoding", "gzip", "`encoding` that ours offers, or in which files are there: gzip, br or zstd")
	flag.IntVar(&s.level, "level", -1, "`level` of the encoder; -1: the usual one. precompressed ignores it")
	flag.Parse()
	h, err := newHandler(s, "files")
	if err != nil {
		fmt.Fprintf(os.Stderr, "compression: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Handler: h})
}

// newHandler returns the arm's handler. Files are written below a directory.
func newHandler(s settings, dir string) (http.Handler, error) {
	all := pages.All()
	inner, err := newCompressed(s, dir, all)
	if err != nil {
		return nil, err
	}
	return newLines(newChecked(inner, all)), nil
}

// plain answers with the pages as they are, and without their length, as handlers do that
// encode what they answer.
type plain map[string]answer

type answer struct {
	contentType []string
	body        []byte
}

func newPlain(all []pages.Page) plain {
	p := plain{}
	for _, page := range all {
		p[page.Path] = answer{[]string{page.Type}, page.Body}
	}
	return p
}

func (p plain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, ok := p[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header()["Content-Type"] = a.contentType
	_, _ = w.Write(a.body) // fails when the client has gone
}
