package cost

import (
	"path"
	"strings"
)

// isClosure reports whether a function is a function literal.
func isClosure(fn string) bool { return strings.Contains(fn, ".func") || strings.HasSuffix(fn, "-fm") }

// within reports whether inner is a function literal inside outer.
func within(inner, outer string) bool { return strings.HasPrefix(inner, outer+".") }

// packageOf returns the import path of a function's package.
func packageOf(fn string) string {
	slash := strings.LastIndexByte(fn, '/')
	dot := strings.IndexByte(fn[slash+1:], '.')
	if dot < 0 {
		return fn
	}
	pkg := fn[:slash+1+dot]
	if strings.IndexByte(pkg, '%') < 0 {
		return pkg
	}
	return strings.ReplaceAll(pkg, "%2e", ".")
}

// standard reports whether pkg is the standard library's: no dot in its first
// element. A program's own main package is not.
func standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return pkg != "main" && !strings.Contains(first, ".")
}

// shortName drops the directories of the import path.
func shortName(fn string) string { return fn[strings.LastIndexByte(fn, '/')+1:] }

// ownerName names a function for people. A function literal goes by the function
// that it is written in: what the linker calls it begins with the function that
// its constructor was inlined into, and ends with numbers that shift when
// another literal is added.
func ownerName(f Frame) string {
	name := shortName(f.Func)
	if !isClosure(f.Func) {
		if rest, ok := strings.CutPrefix(name, "main."); ok && f.File != "" {
			return folder(f.File) + "." + rest // many programs have a main
		}
		return name
	}
	elements := strings.Split(strings.TrimSuffix(name, "-fm"), ".")
	for len(elements) > 1 && numbered(elements[len(elements)-1]) {
		elements = elements[:len(elements)-1]
	}
	writer := elements[len(elements)-1]
	if f.File != "" {
		return folder(f.File) + "." + writer
	}
	return elements[0] + "." + writer
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
	name, _, _ := strings.Cut(path.Base(dir), "@")
	if version := strings.TrimPrefix(name, "v"); version != name && version != "" && strings.Trim(version, "0123456789") == "" {
		name = path.Base(path.Dir(dir))
	}
	return name
}
