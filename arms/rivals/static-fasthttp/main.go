//tare:module github.com/valyala/fasthttp

// Command static-fasthttp serves the files of package pages by fasthttp.FS.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/valyala/fasthttp"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/pages"
)

func main() {
	h, err := handler("files")
	if err != nil {
		fmt.Fprintf(os.Stderr, "static-fasthttp: %v\n", err)
		os.Exit(2)
	}
	arm.Main(arm.Options{Serve: (&fasthttp.Server{Handler: h}).Serve})
}

// handler writes the files below a directory and returns what serves them.
func handler(dir string) (fasthttp.RequestHandler, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := pages.Write(dir, pages.Files()); err != nil {
		return nil, err
	}
	return (&fasthttp.FS{Root: dir, AcceptByteRange: true}).NewRequestHandler(), nil
}
