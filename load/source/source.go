// Package source reads what to ask a service for from files: HTTP archives (HAR 1.2),
// which browsers and proxies record, OpenAPI 3 documents, and lists of requests.
//
// It reads requests, not answers, and only those that are safe to repeat: GET and HEAD
// from an OpenAPI document, anything from a list or an archive, which somebody did send.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// most bounds a file.
const most = 64 << 20

// Request is one kind of request. Its fields have no other meaning than in load.Target,
// but that Path is without scheme and host, or in a list as it is written.
type Request struct {
	Method string
	Path   string // path and query
	Header []Field
	Body   string
	Weight int    // how often it occurs, 1 and more; of a list 0 stands for 1
	At     string // of a list: file:line
}

// Field is a header field.
type Field struct{ Name, Value string }

// ReadFile reads a HAR or OpenAPI file; its content says which. What was left out comes
// as warnings. A file without a request that can be sent is an error.
func ReadFile(path string) (all []Request, warnings []error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // with which some programs begin a file
	if len(data) > most {
		return nil, nil, fmt.Errorf("%s: more than %d MiB", path, most>>20)
	}
	switch kind(data) {
	case "har":
		all, warnings, err = readHAR(data)
	case "openapi":
		all, warnings, err = readOpenAPI(data)
	default:
		err = errors.New("neither an HTTP archive (HAR) nor an OpenAPI 3 document")
	}
	if err == nil && len(all) == 0 {
		err = errors.Join(append([]error{errors.New("no request in it can be sent")}, warnings...)...)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, warnings, nil
}

// kind tells the two by the key that each must have.
func kind(data []byte) string {
	text := string(data[:min(len(data), 1<<20)])
	switch {
	case strings.Contains(text, `"log"`) && strings.Contains(text, `"entries"`):
		return "har"
	case strings.Contains(text, "openapi"):
		return "openapi"
	}
	return ""
}

// tally is the requests of a file, each kind once.
type tally struct {
	all []Request
	at  map[[3]string]int // by method, path and body
}

// add counts a request again, or appends it.
func (t *tally) add(r Request) {
	kind := [3]string{r.Method, r.Path, r.Body}
	i, known := t.at[kind]
	if !known {
		i = len(t.all)
		t.at[kind] = i
		t.all = append(t.all, r)
	}
	t.all[i].Weight++
}

// pathOf is a URL without scheme, host and fragment.
func pathOf(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}
