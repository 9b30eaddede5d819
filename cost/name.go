package cost

import (
	"path"
	"strings"
)

// isClosure reports whether a function is a function literal.
func isClosure(fn string) bool { return strings.Contains(fn, ".func") || strings.HasSuffix(fn, "-fm") }

// within reports whether inner is a function literal inside outer.
func within(inner, outer string) bool { return strings.HasPrefix(inner, outer+".") }

// isMethod reports whether fn is a type's method, or a literal: its name has an element
// between the package's, in which dots are escaped, and the last.
func isMethod(fn string) bool { return strings.Count(fn[strings.LastIndexByte(fn, '/')+1:], ".") > 1 }

// packageOf returns the import path of a function's package; "" if it has none.
func packageOf(fn string) string {
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

// Standard reports whether the frame's function is the standard library's, or nobody's,
// as of assembly, the kernel and what the compiler makes.
func (f Frame) Standard() bool { return standard(packageOf(f.Func)) }

// standard reports whether pkg is the standard library's, or none at all, as of
// assembly, the kernel and what the compiler makes. Modules of a program may have
// names without a dot too, so the library's own are listed.
func standard(pkg string) bool {
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

// shortName drops the directories of the import path, and the version if it ends in
// one.
func shortName(fn string) string { return dotted(escaped(fn)) }

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

// ownerName names a function for people. A function literal goes by the function
// that it is written in: what the linker calls it begins with the function that
// its constructor was inlined into, and ends with numbers that shift when
// another literal is added.
func ownerName(f Frame) string {
	name := escaped(f.Func)
	if !isClosure(f.Func) {
		if rest, ok := strings.CutPrefix(name, "main."); ok && f.File != "" {
			return folder(f.File) + "." + rest // many programs have a main
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
	if f.File != "" {
		return folder(f.File) + "." + writer
	}
	return dotted(elements[0]) + "." + writer
}

// FuncName names a frame's function so that the same function of another build
// has the same name: a literal goes by the function that it is written in.
func FuncName(f Frame) string {
	if isClosure(f.Func) {
		return ownerName(f) + ".func"
	}
	return f.Func
}

// numbered reports whether an element of a linker's name stands for a literal:
// a number, or func and a number.
func numbered(element string) bool {
	digits := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(element, "gowrap"), "func"), "0123456789")
	return digits == "" || strings.HasPrefix(digits, "-range")
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
