package router

import (
	"iter"
	"net/http"
	"slices"
)

// method numbers the methods that a leaf finds by index.
type method uint8

const (
	otherMethod method = iota
	get
	head
	post
	put
	patch
	del
	connect
	options
	trace
	methods // how many
)

func methodOf(name string) method {
	switch name {
	case http.MethodGet:
		return get
	case http.MethodHead:
		return head
	case http.MethodPost:
		return post
	case http.MethodPut:
		return put
	case http.MethodPatch:
		return patch
	case http.MethodDelete:
		return del
	case http.MethodConnect:
		return connect
	case http.MethodOptions:
		return options
	case http.MethodTrace:
		return trace
	default:
		return otherMethod
	}
}

// leaf holds the routes whose paths match the same requests, by method.
type leaf struct {
	routes [methods]*route // what serves the method, be it that of another or of any; [otherMethod]: of any
	named  []namedRoute    // as registered, without those for any method
}

type namedRoute struct {
	method string
	route  *route
}

// add adds a route; two for the same method were found out as a conflict.
func (l *leaf) add(name string, r *route) {
	if name == "" {
		l.routes[otherMethod] = r
	} else {
		l.named = append(l.named, namedRoute{name, r})
	}
	for m := range l.routes {
		l.routes[m] = l.routes[otherMethod]
	}
	for _, x := range l.named {
		if m := methodOf(x.method); m != otherMethod {
			l.routes[m] = x.route
		}
	}
	hasHead := slices.ContainsFunc(l.named, func(x namedRoute) bool { return x.method == http.MethodHead })
	for _, x := range l.named {
		if x.method == http.MethodGet && !hasHead {
			l.routes[head] = x.route
		}
	}
}

// route returns what serves the method, or nil.
func (l *leaf) route(m method, name string) *route {
	if m == otherMethod {
		for _, x := range l.named {
			if x.method == name {
				return x.route
			}
		}
	}
	return l.routes[m]
}

// allowed iterates over the methods that the leaf names.
func (l *leaf) allowed() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, x := range l.named {
			if !yield(x.method) || x.method == http.MethodGet && !yield(http.MethodHead) {
				return
			}
		}
	}
}
