package sys

import (
	"context"
	"net/http"
	"reflect"
	"unsafe"
)

// ContextField knows where this build's http.Request keeps its context. Its zero value does
// not know and goes the public way.
//
// Note: the public way, Request.WithContext, makes a request and copies all of it twice, for
// one field (BenchmarkSetContext).
type ContextField struct {
	offset uintptr
	known  bool
}

// FindContextField looks the field up and tries it.
func FindContextField() ContextField {
	field, ok := reflect.TypeFor[http.Request]().FieldByName("ctx")
	if !ok || field.Type != reflect.TypeFor[context.Context]() {
		return ContextField{}
	}
	f := ContextField{field.Offset, true}
	var r http.Request
	tried, end := context.WithCancel(context.Background())
	defer end()
	if f.Set(&r, tried); r.Context() != tried {
		return ContextField{}
	}
	return f
}

// Known reports whether the field is used.
func (f ContextField) Known() bool { return f.known }

// Set gives r, which nobody else has yet, a context in place of the one that it has.
func (f ContextField) Set(r *http.Request, ctx context.Context) {
	if !f.known {
		*r = *r.WithContext(ctx)
		return
	}
	*(*context.Context)(unsafe.Add(unsafe.Pointer(r), f.offset)) = ctx
}
