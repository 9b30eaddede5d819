package symbol

import (
	"path"
	"strconv"
	"strings"
)

// Packages are import paths by the folder of their files, as functions tell that are
// not literals: a literal goes by the function that it was inlined into. It is not safe
// for concurrent use.
type Packages map[string]string

// Learn takes in a function and its file.
func (p Packages) Learn(fn, file string) {
	dir, pkg := path.Dir(file), Package(fn)
	switch {
	case file == "" || p[dir] == pkg:
	case !IsClosure(fn), p[dir] == "" && namesFolder(pkg, dir):
		p[dir] = pkg
	}
}

// namesFolder reports whether a package seems to lie in a folder, which ends as its path
// does. A literal goes by the function that it was inlined into, whose package may be
// another.
func namesFolder(pkg, dir string) bool { return path.Base(pkg) == path.Base(dir) }

// Of is the import path of a file's package, or its folder where that is not known; ""
// for no file.
func (p Packages) Of(file string) string {
	if file == "" {
		return ""
	}
	dir := path.Dir(file)
	if pkg := p[dir]; pkg != "" {
		return pkg
	}
	if _, module, ok := strings.Cut(dir, "/pkg/mod/"); ok {
		dir = module
	}
	// The cache of modules, and programs built with -trimpath, have MODULE@VERSION/FOLDER.
	if module, rest, ok := strings.Cut(dir, "@"); ok {
		_, folder, _ := strings.Cut(rest, "/")
		return path.Join(module, folder)
	}
	return dir
}

// PackageIn is the import path of a function's package. A literal goes by the function
// that it was inlined into, so its file decides.
func PackageIn(fn, file string) string {
	if IsClosure(fn) && !namesFolder(Package(fn), path.Dir(file)) {
		return Packages(nil).Of(file)
	}
	return Package(fn)
}

// Rename returns the import path of a package that goes by its folder, if that is in the
// module, of which program is the path of package main.
func (p Packages) Rename(pkg, module, program string) string {
	if !path.IsAbs(pkg) { // as a module's folder is
		return pkg
	}
	root := p.root(module, program)
	if rest, ok := strings.CutPrefix(pkg, root); ok && root != "" && (rest == "" || rest[0] == '/') {
		return module + rest
	}
	return pkg
}

// root is the folder of a module; "" where no function shows it.
func (p Packages) root(module, program string) string {
	for dir, pkg := range p {
		if pkg == "main" {
			pkg = program
		}
		inside, ours := strings.CutPrefix(pkg, module)
		if root, ok := strings.CutSuffix(dir, inside); ok && ours && (inside == "" || inside[0] == '/') && path.IsAbs(root) {
			return root
		}
	}
	return ""
}

// Place is file:line, shortened to the file's last two elements; without the line where
// that is 0, and "" for no file.
func Place(file string, line int) string {
	if file == "" {
		return ""
	}
	short := path.Join(path.Base(path.Dir(file)), path.Base(file))
	if line == 0 {
		return short
	}
	return short + ":" + strconv.Itoa(line)
}
