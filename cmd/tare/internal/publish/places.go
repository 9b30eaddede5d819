package publish

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tarehq/tare/lab/cireport"
	"github.com/tarehq/tare/lab/study"
)

// module is a module in the repository.
type module struct{ path, dir string }

// findPlaces finds source files of the modules of the working directory and of the arms below
// the root of the repository. Programs name them by their path in the module, or by where
// they were built.
func findPlaces(s *study.Study) cireport.Places {
	dir, err := os.Getwd()
	if err != nil {
		return func(string) string { return "" }
	}
	modules := findModules(dir)
	for _, a := range s.Arms {
		if a.Go != "" {
			modules = append(modules, findModules(a.Go)...)
		}
	}
	root := findRoot(dir)
	return func(file string) string { return place(root, modules, file) }
}

// place is the path of a file below the root, with slashes; "" if it is not there.
func place(root string, modules []module, file string) string {
	at, longest := file, -1
	for _, m := range modules {
		if rest, ok := m.cut(file); ok && len(m.path) > longest {
			at, longest = filepath.Join(m.dir, rest), len(m.path)
		}
	}
	if info, err := os.Stat(at); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	rel, err := filepath.Rel(root, at)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// cut is the path of a file within the module. A module that another one replaces by its
// folder has a version in the names of its files.
func (m *module) cut(file string) (rest string, ok bool) {
	after, ok := strings.CutPrefix(file, m.path)
	if !ok {
		return "", false
	}
	version, rest, ok := strings.Cut(after, "/")
	return rest, ok && (version == "" || version[0] == '@')
}

// findModules are the modules that a folder is in; none if the go command does not know any.
func findModules(dir string) []module {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var all []module
	for line := range strings.Lines(string(out)) {
		if path, at, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && at != "" {
			all = append(all, module{path, at})
		}
	}
	return all
}

// findRoot is the folder of the repository that a folder is in, or else that folder.
func findRoot(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}
