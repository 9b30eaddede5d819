package study

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/tarehq/tare/stats/bound"
)

// maxNodes bounds how much one file can say, aliases followed.
const maxNodes = 100_000

// reader turns a YAML tree into values by way of shapes. It notes every
// mistake, and where each value stood for the checks that follow.
type reader struct {
	file       string
	mistakes   Mistakes
	anchors    map[string]ast.Node
	stood      map[string]*token.Position // of values, by path
	quantities map[string]bound.Bound     // by path; of figures without an operator
	unread     map[string]bool            // paths of what could not be read
	nodes      int
}

func newReader(file string) *reader {
	return &reader{
		file:       file,
		anchors:    map[string]ast.Node{},
		stood:      map[string]*token.Position{},
		quantities: map[string]bound.Bound{},
		unread:     map[string]bool{},
	}
}

// place is a value in the tree and the path that leads there, such as
// workloads[0].rate; the path of the whole is "".
type place struct {
	path string
	node ast.Node
}

func (p place) key(name string) string {
	if p.path == "" {
		return name
	}
	return p.path + "." + name
}

func (p place) item(i int) string { return fmt.Sprintf("%s[%d]", p.path, i) }

// last is the path's last key: what a person calls the value.
func last(path string) string {
	return path[strings.LastIndexByte(path, '.')+1:]
}

// misread notes that what stands at a path is none of what may stand there.
func (r *reader) misread(path, format string, args ...any) {
	r.unread[path] = true
	r.wrong(path, format, args...)
}

// wrong notes a mistake in what stands at a path, or else in what holds it.
func (r *reader) wrong(path, format string, args ...any) {
	for {
		if pos, ok := r.stood[path]; ok {
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

func (r *reader) wrongAt(pos *token.Position, format string, args ...any) {
	m := Mistake{File: r.file, Line: 1, Column: 1, Text: fmt.Sprintf(format, args...)}
	if pos != nil {
		m.Line, m.Column = max(1, pos.Line), max(1, pos.Column)
	}
	r.mistakes = append(r.mistakes, m)
}

// arrive resolves anchors, aliases and tags and notes where the value stands.
// It returns nil, the mistake noted, where there is nothing to read.
func (r *reader) arrive(at place) ast.Node {
	r.stood[at.path] = start(at.node)
	r.nodes++
	if r.nodes > maxNodes {
		if r.nodes == maxNodes+1 {
			r.misread(at.path, "the file says too much; at most %d values, aliases followed", maxNodes)
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
				r.misread(at.path, "alias *%s has no anchor; write &%s before the value that it repeats, further up", text(v.Value), text(v.Value))
				return nil
			}
			n = target
		case *ast.TagNode:
			n = v.Value
		case nil, *ast.NullNode:
			r.misread(at.path, "%s has no value; give one, or leave the key out", last(at.path))
			return nil
		default:
			return n
		}
	}
	r.misread(at.path, "%s stands for itself; give a value", last(at.path))
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
