package chain

import (
	"net/http"
	"reflect"
	"slices"
)

// Layer is a middleware with what a chain must know of it.
//
// A middleware may know that itself: if the handler that it returns is a
// [Declarer], what that declares fills in the fields that are left zero here.
type Layer struct {
	// Name is what rules and Describe call the layer. Zero: what the
	// middleware declares; else the package of the handler that it returns, as
	// in cors, or of the function, as in main.logging.
	Name string
	// Wrap is the middleware. It is called once for each chain built, unless
	// When leaves the layer out.
	Wrap func(http.Handler) http.Handler
	// When says for which requests the layer stands. Nil: for all.
	When Condition
	// Roles are further names that rules may call the layer by, such as auth
	// for one of many ways to authenticate. Nil: what the middleware declares.
	Roles []string
	// Rules say where the layer may stand. Nil: what the middleware declares;
	// so rules that do not hold in some chain are taken off by an empty slice.
	Rules []Rule
}

// Declarer is a handler made by a middleware that knows its own name, roles and
// rules. A chain asks for them once, when it is built.
type Declarer interface {
	// ChainLayer returns the layer's Name, Roles and Rules.
	ChainLayer() Layer
}

// Rule says where a layer may stand, and why. The layer listed first is the
// outermost: it sees the request before the others and the answer after them. A
// layer is meant by its name or one of its roles.
type Rule struct {
	kind  ruleKind
	other string
	why   string
}

type ruleKind uint8

const (
	after ruleKind = iota
	before
	needs
	first
	last
	once
)

// After says that the layer must not stand before the other one. A cache must
// not stand before auth: it would answer those whom auth lets in and all others
// alike.
func After(other, why string) Rule { return Rule{after, other, why} }

// Before says that the layer must not stand after the other one.
func Before(other, why string) Rule { return Rule{before, other, why} }

// Needs says that the other one must be there, before the layer.
func Needs(other, why string) Rule { return Rule{needs, other, why} }

// First says that nothing may stand before the layer but others that say so.
func First(why string) Rule { return Rule{first, "", why} }

// Last says that nothing may stand after the layer but others that say so.
func Last(why string) Rule { return Rule{last, "", why} }

// Once says that the layer must not be there twice, under this name.
func Once(why string) Rule { return Rule{once, "", why} }

// is reports whether name means the layer.
func (l *Layer) is(name string) bool {
	return l.Name == name || slices.Contains(l.Roles, name)
}

// has reports whether the layer has a rule of that kind.
func (l *Layer) has(k ruleKind) bool {
	return slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.kind == k })
}

// same reports whether a middleware returned the handler that it was given, as one
// that is switched off does.
func same(made, next http.Handler) bool {
	return reflect.ValueOf(made).Comparable() && made == next
}

// complete fills in what is left zero from what the middleware made of next.
func (l *Layer) complete(made, next http.Handler) {
	var declared Layer
	if same(made, next) { // what that one is called and declares is not the layer's
		declared.Name = nameOfWrap(l.Wrap)
	} else if d, ok := made.(Declarer); ok {
		declared = d.ChainLayer()
	}
	if l.Name == "" {
		l.Name = declared.Name
	}
	if l.Name == "" {
		l.Name = nameOfLayer(l.Wrap, made)
	}
	if l.Roles == nil {
		l.Roles = declared.Roles
	}
	if l.Rules == nil {
		l.Rules = declared.Rules
	}
}
