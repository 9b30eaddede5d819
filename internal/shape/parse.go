package shape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The bounds of a file that is parsed.
const (
	maxFile = 1 << 20
	maxKeys = 10_000 // the parser's time grows with the square of a mapping's
	maxDeep = 100    // and its memory with that of the depth
)

// ReadFile reads a file that Decode takes. Devices and pipes, which may have no end or
// never begin, are refused unopened: a run is repeated from its file.
func ReadFile(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1)) // one more shows that it is too large
}

// Decode reads the one document of a file by its shape, and notes what is wrong in r.
func Decode[V any](r *Reader, data []byte, as Of[V], into *V) {
	if len(data) > maxFile {
		r.wrongAt(nil, "the file is too large: at most %d bytes are read", maxFile)
		return
	}
	docs, ok := r.documents(data)
	if !ok {
		return
	}
	switch {
	case len(docs) == 0:
		r.wrongAt(nil, "the file is empty; see `tare help %s` for what it may say", r.topic)
	case len(docs) > 1:
		r.wrongAt(start(docs[1]), "a second document begins; one file holds one document")
	default:
		as.read(r, Place{"", docs[0]}, into)
	}
}

// documents parses YAML; ok is false, the mistake noted, where there is none. Line
// ends are made the same first: the parser counts lines wrongly where they are not.
func (r *Reader) documents(data []byte) (docs []ast.Node, ok bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	tokens := lexer.Tokenize(string(data))
	if at, what := beyond(tokens); at != nil {
		r.wrongAt(at, "%s", what)
		return nil, false
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return nil, false
	}
	for _, d := range f.Docs {
		if v, is := d.Body.(*ast.DirectiveNode); is && text(v.Name) == "YAML" {
			continue // says that what follows is YAML
		}
		if d.Body != nil {
			docs = append(docs, d.Body)
		}
	}
	return docs, true
}

// beyond is where a file begins to ask too much of the parser, and how; nil if it
// does not. Depth by indentation is bounded by the size of the file.
func beyond(tokens token.Tokens) (at *token.Position, how string) {
	keys, deep, line, dashes := 0, 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingValueType:
			keys++
		case token.SequenceStartType, token.MappingStartType:
			deep++
		case token.SequenceEndType, token.MappingEndType:
			deep--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Line != line {
				line, dashes = t.Position.Line, 0
			}
			dashes++
		}
		switch {
		case keys > maxKeys:
			return t.Position, fmt.Sprintf("the file says too much; at most %d keys", maxKeys)
		case max(deep, dashes) > maxDeep:
			return t.Position, fmt.Sprintf("too deep; at most %d lists or mappings within one another", maxDeep)
		}
	}
	return nil, ""
}

// syntax notes what the YAML parser could not read.
func (r *Reader) syntax(err error) {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		r.wrongAt(at.GetToken().Position, "not YAML: %s", at.GetMessage())
		return
	}
	r.wrongAt(nil, "not YAML: %v", err)
}
