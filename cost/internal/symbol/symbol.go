// Package symbol reads the names that the linker gives to functions.
package symbol

import (
	"path"
	"strings"
)

// IsClosure reports whether a function is a function literal.
func IsClosure(fn string) bool { return strings.Contains(fn, ".func") || strings.HasSuffix(fn, "-fm") }

// Within reports whether inner is a function literal inside outer.
func Within(inner, outer string) bool { return strings.HasPrefix(inner, outer+".") }

// IsMethod reports whether fn is a type's method, or a literal: its name has an element
// between the package's, in which dots are escaped, and the last.
func IsMethod(fn string) bool { return strings.Count(fn[strings.LastIndexByte(fn, '/')+1:], ".") > 1 }

// Package returns the import path of a function's package; "" if it has none.
func Package(fn string) string {
	slash := strings.LastIndexByte(fn, '/')
	dot := strings.IndexByte(fn[slash+1:], '.')
	if dot < 0 {
		return ""
	}
	return dotted(fn[:slash+1+dot])
}

// dotted writes a name's dots, which the linker escapes in the last element of an import
// path, as the path has them.
func dotted(name string) string {
	if strings.IndexByte(name, '%') < 0 {
		return name
	}
	return strings.ReplaceAll(name, "%2e", ".")
}

// Standard reports whether pkg is the standard library's, or none at all, as of
// assembly, the kernel and what the compiler makes. Modules of a program may have
// names without a dot too, so the library's own are listed.
func Standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return library[first] || strings.HasPrefix(first, "[") || strings.HasPrefix(first, "type:")
}

// library holds the first elements of the standard library's import paths, by
// `go list std`; none is that of a function without a package.
var library = map[string]bool{
	"": true, "archive": true, "bufio": true, "builtin": true, "bytes": true, "cmp": true,
	"compress": true, "container": true, "context": true, "crypto": true, "database": true,
	"debug": true, "embed": true, "encoding": true, "errors": true, "expvar": true, "flag": true,
	"fmt": true, "go": true, "hash": true, "html": true, "image": true, "index": true,
	"internal": true, "io": true, "iter": true, "log": true, "maps": true, "math": true,
	"mime": true, "net": true, "os": true, "path": true, "plugin": true, "reflect": true,
	"regexp": true, "runtime": true, "slices": true, "sort": true, "strconv": true,
	"strings": true, "structs": true, "sync": true, "syscall": true, "testing": true,
	"text": true, "time": true, "unicode": true, "unique": true, "unsafe": true,
	"vendor": true, "weak": true,
}

// Short drops the directories of the import path, and the version if it ends in
// one.
func Short(fn string) string { return dotted(escaped(fn)) }

// escaped is that name with the last element of the path as the linker writes it, whose
// dots are no ends of it.
func escaped(fn string) string {
	slash := strings.LastIndexByte(fn, '/')
	pkg, name, _ := strings.Cut(fn[slash+1:], ".")
	if slash > 0 && isVersion(pkg) {
		return path.Base(fn[:slash]) + "." + name
	}
	return fn[slash+1:]
}

// isVersion reports whether an element of a path is a module's version, as v3.
func isVersion(element string) bool {
	digits, ok := strings.CutPrefix(element, "v")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// Name names a function for people. A function literal goes by the function
// that it is written in: what the linker calls it begins with the function that
// its constructor was inlined into, and ends with numbers that shift when
// another literal is added.
func Name(fn, file string) string {
	name := escaped(fn)
	if !IsClosure(fn) {
		if rest, ok := strings.CutPrefix(name, "main."); ok && file != "" {
			return folder(file) + "." + rest // many programs have a main
		}
		return dotted(name)
	}
	name = strings.ReplaceAll(name, "[...]", "") // type arguments, whose dots part nothing
	elements := strings.Split(strings.TrimSuffix(name, "-fm"), ".")
	for len(elements) > 1 && numbered(elements[len(elements)-1]) {
		elements = elements[:len(elements)-1]
	}
	writer := elements[len(elements)-1]
	if n := len(elements) - 2; n >= 0 && strings.HasPrefix(elements[n], "(*") {
		writer = elements[n] + "." + writer // a type's method: another's may have its name
	}
	if file != "" {
		return folder(file) + "." + writer
	}
	return dotted(elements[0]) + "." + writer
}

// Identity names a function so that the same function of another build
// has the same name: a literal goes by the function that it is written in.
func Identity(fn, file string) string {
	if IsClosure(fn) {
		return Name(fn, file) + ".func"
	}
	return fn
}

// Goroutine names what a goroutine began with. A literal's name differs from that of the
// function it is written in, which may be an owner itself.
func Goroutine(fn, file string) string {
	if IsClosure(fn) {
		return Identity(fn, file)
	}
	return Short(fn)
}

// numbered reports whether an element of a linker's name stands for a literal:
// a number, or func and a number.
func numbered(element string) bool {
	digits := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(element, "gowrap"), "func"), "0123456789")
	return digits == "" || strings.HasPrefix(digits, "-range")
}

// Method returns a method's name without its type.
func Method(fn string) string { return fn[strings.LastIndexByte(fn, '.')+1:] }

// Nested reports whether a function is a literal within a literal.
func Nested(fn string) bool {
	return IsClosure(fn) && strings.Trim(Method(fn), "0123456789") == ""
}

// folder names the directory of a file as one would name its package: without
// the version of its module, which may be the directory's whole name.
func folder(file string) string {
	dir := path.Dir(file)
	if dir == "." {
		return "main" // built from files by name: go build main.go
	}
	name, _, _ := strings.Cut(path.Base(dir), "@")
	if isVersion(name) {
		name = path.Base(path.Dir(dir))
	}
	return name
}

// Dependency reports whether a file is of a module that the program requires.
func Dependency(file string) bool {
	return strings.Contains(file, "@v") || strings.Contains(file, "/vendor/")
}

// Module names a dependency's module by its file: its path's last element that is no
// version.
func Module(file string) (string, bool) {
	module, _, ok := strings.Cut(file, "@v")
	if !ok {
		return "", false
	}
	return folder(module + "/"), true
}

// Parents returns the last n elements of the path in which a folder is, without versions.
func Parents(folder string, n int) string {
	all := strings.Split(strings.Trim(path.Dir(folder), "/"), "/")
	all = all[max(0, len(all)-n):]
	for i, element := range all {
		all[i], _, _ = strings.Cut(element, "@")
	}
	return strings.Join(all, "/")
}
