// Package studies holds the built-in studies and the published claims that
// they test.
//
// A study is a YAML file of this directory, read like any user's own;
// claims.yaml lists the claims. study.schema.json describes study files to
// editors.
package studies

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/lab/published"
	"github.com/tarehq/tare/lab/study"
)

//go:embed *.yaml
var files embed.FS

const claimsFile = "claims.yaml"

// All returns the built-in studies, by name.
func All() ([]*study.Study, error) {
	names, err := builtIn()
	if err != nil {
		return nil, err
	}
	var all []*study.Study
	for _, name := range names {
		s, err := read(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Named returns the built-in study of that name and reads no other. The error of a wrong
// name says which there are.
func Named(name string) (*study.Study, error) {
	names, err := builtIn()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("no built-in study is called %q; %sthere are %s", name, shape.Meant(name, names), strings.Join(names, ", "))
	}
	return read(name)
}

// builtIn returns the names of the built-in studies, sorted.
func builtIn() ([]string, error) {
	found, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing built-in studies: %w", err)
	}
	var names []string
	for _, file := range found {
		if file != claimsFile {
			names = append(names, strings.TrimSuffix(file, ".yaml"))
		}
	}
	return names, nil
}

// Claims returns the published claims in the order of the publications.
func Claims() ([]published.Claim, error) {
	data, err := files.ReadFile(claimsFile)
	if err != nil {
		return nil, fmt.Errorf("reading published claims: %w", err)
	}
	return published.Parse("studies/"+claimsFile, data)
}

func read(name string) (*study.Study, error) {
	file := path.Join("studies", name+".yaml")
	data, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("reading built-in study: %w", err)
	}
	s, err := study.Parse(file, data)
	if err != nil {
		return nil, err
	}
	if s.Name != name {
		return nil, fmt.Errorf("%s: the study is called %q; a built-in study is called like its file", file, s.Name)
	}
	return s, nil
}
