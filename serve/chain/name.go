package chain

import (
	"fmt"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"runtime"
	"strings"
)

// nameOfLayer returns what to call a middleware that does not say: the package
// of the handler that it makes if that has a type of its own, else its function.
func nameOfLayer(wrap func(http.Handler) http.Handler, made http.Handler) string {
	t := reflect.TypeOf(made)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if name := t.Name(); name != "" && t.PkgPath() != "net/http" {
		return qualified(packageOf(t.PkgPath()), name)
	}
	return nameOfFunc(reflect.ValueOf(wrap).Pointer())
}

// nameOfWrap returns what to call a middleware of which nothing else is known.
func nameOfWrap(wrap func(http.Handler) http.Handler) string {
	return nameOfFunc(reflect.ValueOf(wrap).Pointer())
}

// nameOfHandler returns what to call the handler at the end.
func nameOfHandler(h http.Handler) string {
	if f, ok := h.(http.HandlerFunc); ok {
		return nameOfFunc(reflect.ValueOf(f).Pointer())
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", h), "*")
}

// qualified leaves out a type's name that says no more than the package's.
func qualified(pkg, name string) string {
	if strings.EqualFold(name, "handler") || strings.EqualFold(name, pkg) {
		return pkg
	}
	return pkg + "." + name
}

var version = regexp.MustCompile(`^v[0-9]+$|@.*$`)

// packageOf returns the last part of an import path that is no version.
func packageOf(importPath string) string {
	dir, last := path.Split(importPath)
	if version.MatchString(last) && dir != "" && !strings.Contains(last, "@") {
		return packageOf(strings.TrimSuffix(dir, "/"))
	}
	return version.ReplaceAllString(last, "")
}

// nameOfFunc returns what to call a function: package, type and name as its
// author wrote them. A closure is called like the function that it was written
// in. The package is that of the source file, since a constructor that was
// inlined gives the closures that it returns to the package of its caller.
func nameOfFunc(pc uintptr) string {
	f := runtime.FuncForPC(pc)
	if f == nil {
		return "unknown"
	}
	file, line := f.FileLine(pc)
	name := cleaned(f.Name())
	if name == "" {
		name = fmt.Sprintf("%s:%d", path.Base(file), line)
	}
	return packageOf(path.Dir(file)) + "." + name
}

var (
	// made is what the compiler adds to the names of closures.
	made = regexp.MustCompile(`^(func|gowrap|deferwrap)?[0-9]+$|^init$|^glob$|^$`)
	// generic stands for type arguments.
	generic = regexp.MustCompile(`\[[^\[\]]*\]`)
)

// cleaned returns the name of the innermost function, with its type if it is a
// method, in the name that the compiler gave: auth in main.main.auth.func1,
// Cors.Handler in github.com/rs/cors.(*Cors).Handler-fm. It is empty if that is
// main, where closures are written that have no other name.
func cleaned(full string) string {
	full = strings.TrimSuffix(generic.ReplaceAllString(full, ""), "-fm")
	parts := strings.Split(full[strings.LastIndexByte(full, '/')+1:], ".")[1:] // the package's own
	for len(parts) > 0 && made.MatchString(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return ""
	}
	name := parts[len(parts)-1]
	if len(parts) == 1 {
		return name
	}
	if of := parts[len(parts)-2]; strings.HasPrefix(of, "(*") {
		return strings.Trim(of, "(*)") + "." + name
	}
	return name
}
