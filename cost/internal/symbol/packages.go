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
	if dir := path.Dir(file); file != "" && !IsClosure(fn) && p[dir] == "" {
		p[dir] = Package(fn)
	}
}

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
