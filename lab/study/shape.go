package study

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// shape says how a value is written: for the reader, and for editors.
type shape[V any] struct {
	schema schema
	read   func(r *reader, at place, into *V)
}

// key is one key of a mapping that is read into a T.
type key[T any] struct {
	name, doc string
	required  bool
	schema    schema
	read      func(r *reader, at place, into *T)
}

// field declares a key whose value goes where to points.
func field[T, V any](name, doc string, s shape[V], to func(*T) *V) key[T] {
	described := s.schema
	described.Description = doc
	return key[T]{name: name, doc: doc, schema: described, read: func(r *reader, at place, into *T) {
		s.read(r, at, to(into))
	}}
}

// must makes the key required.
func (k key[T]) must() key[T] {
	k.required = true
	return k
}

// object is a mapping with these keys and no others; what is its name in
// messages. The rules hold for editors what the checks hold for the reader.
func object[T any](what string, keys []key[T], rules ...schema) shape[T] {
	s := schema{Type: "object", Properties: map[string]schema{}, AdditionalProperties: new(bool), AllOf: rules}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
		s.Properties[k.name] = k.schema
		if k.required {
			s.Required = append(s.Required, k.name)
		}
	}
	return shape[T]{s, func(r *reader, at place, into *T) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		m, ok := n.(*ast.MappingNode)
		if !ok {
			r.misread(at.path, "%s: got %s; want a mapping with the keys %s", what, describe(n), strings.Join(names, ", "))
			return
		}
		seen, meant := map[string]bool{}, map[string]bool{}
		for _, v := range m.Values {
			name := text(v.Key)
			i := slices.Index(names, name)
			switch {
			case i < 0:
				meant[r.unknownKey(place{at.path, v.Key}, what, names)] = true
			case seen[name]:
				r.wrongAt(start(v.Key), "%s says %s twice; say it once", what, name)
			default:
				seen[name] = true
				keys[i].read(r, place{at.key(name), v.Value}, into)
			}
		}
		for _, k := range keys {
			if k.required && !seen[k.name] && !meant[k.name] && !r.unread[at.path] {
				r.wrong(at.path, "%s lacks the key %s: %s", what, k.name, k.doc)
			}
		}
	}}
}

// unknownKey notes the mistake and returns the key that was meant, if clear. A
// merge key leaves the whole mapping unread.
func (r *reader) unknownKey(at place, what string, names []string) string {
	name := text(at.node)
	if name == "<<" {
		r.unread[at.path] = true
		r.wrongAt(start(at.node), "%s: merge keys (<<) are not understood; write the keys out, or repeat single values by *alias", what)
		return ""
	}
	r.wrongAt(start(at.node), "%s has no key %q; %sallowed: %s", what, name, Meant(name, names), strings.Join(names, ", "))
	return Nearest(name, names)
}

// list is a list of at least min values of one shape.
func list[V any](of shape[V], min int) shape[[]V] {
	return shape[[]V]{schema{Type: "array", Items: &of.schema, MinItems: min}, func(r *reader, at place, into *[]V) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		s, ok := n.(*ast.SequenceNode)
		if !ok {
			r.misread(at.path, "%s: got %s; want a list, such as [a, b], or a line - a for each", last(at.path), describe(n))
			return
		}
		if len(s.Values) < min {
			r.misread(at.path, "%s: got a list of %d; want at least %d", last(at.path), len(s.Values), min)
		}
		*into = make([]V, len(s.Values))
		for i, v := range s.Values {
			of.read(r, place{at.item(i), v}, &(*into)[i])
		}
	}}
}

// dict is a mapping from names of the writer's own, of a given form that want
// puts in words, to values of one shape.
func dict[V any](form, want string, of shape[V]) shape[map[string]V] {
	re := regexp.MustCompile(form)
	s := schema{Type: "object", PropertyNames: &schema{Pattern: form}, AdditionalProperties: &of.schema}
	return shape[map[string]V]{s, func(r *reader, at place, into *map[string]V) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		m, ok := n.(*ast.MappingNode)
		if !ok {
			r.misread(at.path, "%s: got %s; want a mapping, such as {name: value}", last(at.path), describe(n))
			return
		}
		*into = make(map[string]V, len(m.Values))
		for _, v := range m.Values {
			name := text(v.Key)
			if _, twice := (*into)[name]; twice {
				r.wrongAt(start(v.Key), "%s says %s twice; say it once", last(at.path), name)
				continue
			}
			if !re.MatchString(name) {
				r.wrongAt(start(v.Key), "%s: got the name %q; want %s", last(at.path), name, want)
				continue
			}
			var val V
			of.read(r, place{at.key(name), v.Value}, &val)
			(*into)[name] = val
		}
	}}
}

// optional tells a value from its absence.
func optional[V any](of shape[V]) shape[*V] {
	return shape[*V]{of.schema, func(r *reader, at place, into **V) {
		*into = new(V)
		of.read(r, at, *into)
	}}
}
