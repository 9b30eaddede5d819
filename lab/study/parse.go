package study

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds the size of a file that is parsed.
const maxFile = 1 << 20

// ParseFile reads and checks a study file. Its error is that of the file, or
// Mistakes.
func ParseFile(path string) (*Study, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading study: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // one more shows that it is too large
	if err != nil {
		return nil, fmt.Errorf("reading study: %w", err)
	}
	s, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	s.File = path
	return s, nil
}

// Parse reads and checks a study; name is what the file is called in
// messages. The error is Mistakes: everything that is wrong, at once.
func Parse(name string, data []byte) (*Study, error) {
	r := newReader(name)
	var s Study
	decode(r, data, studyShape(), &s)
	if r.nodes > 0 {
		s.complete()
		check(r, &s)
	}
	if err := r.mistakes.err(); err != nil {
		return nil, err
	}
	return &s, nil
}

// complete writes out what is understood where nothing is said.
func (s *Study) complete() {
	for _, c := range s.Claims {
		for i := range c.Checks {
			c.Checks[i].complete()
		}
	}
}

func (k *Check) complete() {
	if k.Kind == "" {
		k.Kind = Effect
	}
	if k.PublishedDifference != nil && k.Direction == "" {
		k.Direction = "more" // a difference is written without a sign
	}
	switch r := k.PublishedRatio; {
	case r == nil || k.Direction != "" || *r == 1:
	case *r > 1:
		k.Direction = "more"
	default:
		k.Direction = "less"
	}
}

// decode reads the one document of a file by its shape.
func decode[V any](r *reader, data []byte, as shape[V], into *V) {
	if len(data) > maxFile {
		r.wrongAt(nil, "the file is too large: at most %d bytes are read", maxFile)
		return
	}
	docs, err := documents(data)
	if err != nil {
		r.syntax(err)
		return
	}
	switch {
	case len(docs) == 0:
		r.wrongAt(nil, "the file is empty; see docs/study-files.md for what it may say")
	case len(docs) > 1:
		r.wrongAt(start(docs[1]), "a second document begins; one file holds one document")
	default:
		as.read(r, place{"", docs[0]}, into)
	}
}

// documents parses YAML. Line ends are made the same first: the parser counts
// lines wrongly where they are not.
func documents(data []byte) ([]ast.Node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	f, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	var docs []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			docs = append(docs, d.Body)
		}
	}
	return docs, nil
}

// syntax notes what the YAML parser could not read.
func (r *reader) syntax(err error) {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		r.wrongAt(at.GetToken().Position, "not YAML: %s", at.GetMessage())
		return
	}
	r.wrongAt(nil, "not YAML: %v", err)
}
