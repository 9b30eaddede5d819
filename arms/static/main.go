// Command static serves the files of package pages: by http.FileServer, by the middleware
// static, or mapped into memory, under a tag that is computed for each request.
//
// As facts it reports what its tag tells of a file that is replaced by another of the same
// size and time.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/pages"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/static"
)

func main() {
	by := flag.String("by", "fileserver", "`what` serves files: fileserver, static or mapped")
	tag := flag.String("tag", "time", "`tag` of mapped files: time, sha256 or crc32")
	server := engines.Flag(engines.NetHTTP)
	flag.Parse()
	h, err := prepare("files", *by, *tag)
	if err != nil {
		fmt.Fprintf(os.Stderr, "static: %v\n", err)
		os.Exit(2)
	}
	once := sync.OnceValue(func() map[string]string { return facts(*by, *tag) })
	arm.Main(arm.Options{Handler: h, Serve: server.Run(h), Context: server.LoopContext(), Facts: once})
}

// prepare writes the files below a directory and returns what serves them.
func prepare(dir, by, tag string) (http.Handler, error) {
	if err := pages.Write(dir, pages.Files()); err != nil {
		return nil, err
	}
	return newHandler(dir, by, tag)
}

func newHandler(dir, by, tag string) (http.Handler, error) {
	if by == "fileserver" {
		return http.FileServer(http.Dir(dir)), nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	switch by {
	case "static":
		mw, err := static.New(static.Options{Files: root.FS(), NoSiblings: true})
		if err != nil {
			return nil, err
		}
		return chain.New(mw).Then(http.NotFoundHandler())
	case "mapped":
		compute, ok := tags[tag]
		if !ok {
			return nil, fmt.Errorf("tag %q: there are time, sha256 and crc32", tag)
		}
		return &mapped{root, compute}, nil
	}
	return nil, fmt.Errorf("files served by %q: there are fileserver, static and mapped", by)
}
