package shape

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/tarehq/tare/stats/bound"
)

// maxNodes bounds how much one file can say, aliases followed.
const maxNodes = 100_000

// Reader turns a YAML tree into values by way of shapes. It notes every
// mistake, and where each value stood for the checks that follow.
type Reader struct {
	Mistakes   Mistakes
	Stood      map[string]*token.Position // of values, by path
	Quantities map[string]bound.Bound     // by path; of figures without an operator
	Unread     map[string]bool            // paths of what could not be read
	Nodes      int                        // values met, aliases followed

	file, topic string
	anchors     map[string]ast.Node
}

// NewReader returns a reader of one file; file is what it is called in messages, and
// topic the topic of help that says what it may hold.
func NewReader(file, topic string) *Reader {
	return &Reader{
		Stood:      map[string]*token.Position{},
		Quantities: map[string]bound.Bound{},
		Unread:     map[string]bool{},
		file:       file,
		topic:      topic,
		anchors:    map[string]ast.Node{},
	}
}

// Err is the mistakes noted, in order of position; nil when there is none.
func (r *Reader) Err() error { return r.Mistakes.err() }

// Place is a value in the tree and the path that leads there, such as
// workloads[0].rate; the path of the whole is "".
type Place struct {
	path string
	node ast.Node
}

func (p Place) key(name string) string {
	if p.path == "" {
		return name
	}
	return p.path + "." + name
}

func (p Place) item(i int) string { return fmt.Sprintf("%s[%d]", p.path, i) }

// Last is the path's last key: what a person calls the value.
func Last(path string) string {
	return path[strings.LastIndexByte(path, '.')+1:]
}

// Misread notes that what stands at a path is none of what may stand there.
func (r *Reader) Misread(path, format string, args ...any) {
	r.Unread[path] = true
	r.Wrong(path, format, args...)
}

// Wrong notes a mistake in what stands at a path, or else in what holds it.
func (r *Reader) Wrong(path, format string, args ...any) {
	for {
		if pos, ok := r.Stood[path]; ok {
			r.wrongAt(pos, format, args...)
			return
		}
		if path == "" {
			r.wrongAt(nil, format, args...)
			return
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

func (r *Reader) wrongAt(pos *token.Position, format string, args ...any) {
	m := Mistake{File: r.file, Line: 1, Column: 1, Text: fmt.Sprintf(format, args...)}
	if pos != nil {
		m.Line, m.Column = max(1, pos.Line), max(1, pos.Column)
	}
	r.Mistakes = append(r.Mistakes, m)
}

// arrive resolves anchors, aliases and tags and notes where the value stands.
// It returns nil, the mistake noted, where there is nothing to read.
func (r *Reader) arrive(at Place) ast.Node {
	r.Stood[at.path] = start(at.node)
	r.Nodes++
	if r.Nodes > maxNodes {
		if r.Nodes == maxNodes+1 {
			r.Misread(at.path, "the file says too much; at most %d values, aliases followed", maxNodes)
		}
		return nil
	}
	n := at.node
	for range 8 { // &a *b, !!str &a … : nobody stacks more
		switch v := n.(type) {
		case *ast.AnchorNode:
			r.anchors[text(v.Name)] = v.Value
			n = v.Value
		case *ast.AliasNode:
			target, ok := r.anchors[text(v.Value)]
			if !ok {
				r.Misread(at.path, "alias *%s has no anchor; write &%s before the value that it repeats, further up", text(v.Value), text(v.Value))
				return nil
			}
			n = target
		case *ast.TagNode:
			n = v.Value
		case nil, *ast.NullNode:
			r.Misread(at.path, "%s has no value; give one, or leave the key out", Last(at.path))
			return nil
		default:
			return n
		}
	}
	r.Misread(at.path, "%s stands for itself; give a value", Last(at.path))
	return nil
}

// start is where a node's first character stands.
func start(n ast.Node) *token.Position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return start(m.Values[0].Key)
	}
	if n == nil || n.GetToken() == nil {
		return nil
	}
	return n.GetToken().Position
}

// text is what a scalar says; "" for anything else.
func text(n ast.Node) string {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return v.Value.Value
	case ast.ScalarNode:
		return v.GetToken().Value
	}
	return ""
}

// describe says what a node is, for "got …".
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		s := text(n)
		if cut := 60; len(s) > cut {
			s = strings.ToValidUTF8(s[:cut], "") + "…"
		}
		return fmt.Sprintf("%q", s)
	case *ast.IntegerNode, *ast.FloatNode:
		if octal(n) {
			return "the number " + text(n) + ", which some read as octal: remove the leading 0"
		}
		return "the number " + text(n)
	case *ast.BoolNode:
		return text(n)
	}
	return "something else"
}
