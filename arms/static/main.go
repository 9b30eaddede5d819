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
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/pages"
	"github.com/tarehq/tare/arms/serve/engines"
	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/static"
)

func main() {
	by := flag.String("by", "fileserver", "`what` serves files: fileserver, static or mapped")
	tag := flag.String("tag", "time", "`tag` of mapped files: time, sha256 or crc32")
	fresh := flag.Duration("fresh", 0, "how `long` the middleware static believes what it found; 0: it looks for each request")
	server := engines.Flag(engines.NetHTTP)
	flag.Parse()
	set := setting{*by, *tag, *fresh}
	h, err := prepare("files", set)
	if err != nil {
		fmt.Fprintf(os.Stderr, "static: %v\n", err)
		os.Exit(2)
	}
	once := sync.OnceValue(func() map[string]string { return facts(set) })
	arm.Main(arm.Options{Handler: h, Serve: server.Run(h), Context: server.LoopContext(), Facts: once})
}

// setting is how files are served.
type setting struct {
	by, tag string
	fresh   time.Duration
}

// prepare writes the files below a directory and returns what serves them.
func prepare(dir string, set setting) (http.Handler, error) {
	if err := pages.Write(dir, pages.Files()); err != nil {
		return nil, err
	}
	return newHandler(dir, set)
}

func newHandler(dir string, set setting) (http.Handler, error) {
	if set.by == "fileserver" {
		return http.FileServer(http.Dir(dir)), nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	switch set.by {
	case "static":
		mw, err := static.New(static.Options{Files: root.FS(), NoSiblings: true, Fresh: set.fresh})
		if err != nil {
			return nil, err
		}
		return chain.New(mw).Then(http.NotFoundHandler())
	case "mapped":
		compute, ok := tags[set.tag]
		if !ok {
			return nil, fmt.Errorf("tag %q: there are time, sha256 and crc32", set.tag)
		}
		return &mapped{root, compute}, nil
	}
	return nil, fmt.Errorf("files served by %q: there are fileserver, static and mapped", set.by)
}
