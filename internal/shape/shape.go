package shape

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Of says how a value is written: for the reader, and for editors.
type Of[V any] struct {
	schema Schema
	read   func(r *Reader, at Place, into *V)
}

// Key is one key of a mapping that is read into a T.
type Key[T any] struct {
	name, doc string
	required  bool
	schema    Schema
	read      func(r *Reader, at Place, into *T)
}

// Field declares a key whose value goes where to points.
func Field[T, V any](name, doc string, s Of[V], to func(*T) *V) Key[T] {
	described := s.schema
	described.Description = doc
	return Key[T]{name: name, doc: doc, schema: described, read: func(r *Reader, at Place, into *T) {
		s.read(r, at, to(into))
	}}
}

// Must makes the key required.
func (k Key[T]) Must() Key[T] {
	k.required = true
	return k
}

// Object is a mapping with these keys and no others; what is its name in
// messages. The rules hold for editors what the checks hold for the reader.
func Object[T any](what string, keys []Key[T], rules ...Schema) Of[T] {
	s := Schema{Type: "object", Properties: map[string]Schema{}, AdditionalProperties: new(bool), AllOf: rules}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
		s.Properties[k.name] = k.schema
		if k.required {
			s.Required = append(s.Required, k.name)
		}
	}
	return Of[T]{s, func(r *Reader, at Place, into *T) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		m, ok := n.(*ast.MappingNode)
		if !ok {
			r.Misread(at.path, "%s: got %s; want a mapping with the keys %s", what, describe(n), strings.Join(names, ", "))
			return
		}
		seen, meant := map[string]bool{}, map[string]bool{}
		for _, v := range m.Values {
			name := text(v.Key)
			i := slices.Index(names, name)
			switch {
			case i < 0:
				meant[r.unknownKey(Place{at.path, v.Key}, what, names)] = true
			case seen[name]:
				r.wrongAt(start(v.Key), "%s says %s twice; say it once", what, name)
			default:
				seen[name] = true
				keys[i].read(r, Place{at.key(name), v.Value}, into)
			}
		}
		for _, k := range keys {
			if k.required && !seen[k.name] && !meant[k.name] && !r.Unread[at.path] {
				r.Wrong(at.path, "%s lacks the key %s: %s", what, k.name, k.doc)
			}
		}
	}}
}

// unknownKey notes the mistake and returns the key that was meant, if clear. A
// merge key leaves the whole mapping unread.
func (r *Reader) unknownKey(at Place, what string, names []string) string {
	name := text(at.node)
	if name == "<<" {
		r.Unread[at.path] = true
		r.wrongAt(start(at.node), "%s: merge keys (<<) are not understood; write the keys out, or repeat single values by *alias", what)
		return ""
	}
	r.wrongAt(start(at.node), "%s has no key %q; %sallowed: %s", what, name, Meant(name, names), strings.Join(names, ", "))
	return Nearest(name, names)
}

// List is a list of at least min values of one shape.
func List[V any](of Of[V], min int) Of[[]V] {
	return Of[[]V]{Schema{Type: "array", Items: &of.schema, MinItems: min}, func(r *Reader, at Place, into *[]V) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		s, ok := n.(*ast.SequenceNode)
		if !ok {
			r.Misread(at.path, "%s: got %s; want a list, such as [a, b], or a line - a for each", Last(at.path), describe(n))
			return
		}
		if len(s.Values) < min {
			r.Misread(at.path, "%s: got a list of %d; want at least %d", Last(at.path), len(s.Values), min)
		}
		*into = make([]V, len(s.Values))
		for i, v := range s.Values {
			of.read(r, Place{at.item(i), v}, &(*into)[i])
		}
	}}
}

// Dict is a mapping from names of the writer's own, of a given form that want
// puts in words, to values of one shape.
func Dict[V any](form, want string, of Of[V]) Of[map[string]V] {
	re := regexp.MustCompile(form)
	s := Schema{Type: "object", PropertyNames: &Schema{Pattern: form}, AdditionalProperties: &of.schema}
	return Of[map[string]V]{s, func(r *Reader, at Place, into *map[string]V) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		m, ok := n.(*ast.MappingNode)
		if !ok {
			r.Misread(at.path, "%s: got %s; want a mapping, such as {name: value}", Last(at.path), describe(n))
			return
		}
		*into = make(map[string]V, len(m.Values))
		for _, v := range m.Values {
			name := text(v.Key)
			if _, twice := (*into)[name]; twice {
				r.wrongAt(start(v.Key), "%s says %s twice; say it once", Last(at.path), name)
				continue
			}
			if !re.MatchString(name) {
				r.wrongAt(start(v.Key), "%s: got the name %q; want %s", Last(at.path), name, want)
				continue
			}
			var val V
			of.read(r, Place{at.key(name), v.Value}, &val)
			(*into)[name] = val
		}
	}}
}

// Named is a value whose schema stands among the definitions of [Of.Encode], and whose shape
// is made when one is read: it may hold values of its own shape.
func Named[V any](name string, of func() Of[V]) Of[V] {
	return Of[V]{Schema{Ref: "#/$defs/" + name}, func(r *Reader, at Place, into *V) { of().read(r, at, into) }}
}

// Schema is what editors know of the shape.
func (s Of[V]) Schema() Schema { return s.schema }

// Optional tells a value from its absence.
func Optional[V any](of Of[V]) Of[*V] {
	return Of[*V]{of.schema, func(r *Reader, at Place, into **V) {
		*into = new(V)
		of.read(r, at, *into)
	}}
}

// Included is a value that stands in its place, or in a file whose name stands there instead.
type Included[V any] struct {
	File  string // "" = in its place
	Value V      // the zero value where it is in a file
	Tree  any    // what was written in its place, as [Tree] has it
}

// Include is a value of a shape, or the name of a file, which whoever checks the value reads.
func Include[V any](of Of[V]) Of[Included[V]] {
	name := Argument()
	return Of[Included[V]]{Schema{OneOf: []Schema{name.schema, of.schema}}, func(r *Reader, at Place, into *Included[V]) {
		if _, named := written(at.node); named {
			name.read(r, at, &into.File)
			return
		}
		of.read(r, at, &into.Value)
		again := NewReader(r.file, r.topic) // its mistakes are those of the first time
		again.anchors = r.anchors
		into.Tree = again.tree(at, 0)
	}}
}
