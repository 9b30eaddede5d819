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
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing built-in studies: %w", err)
	}
	var all []*study.Study
	for _, file := range names {
		if file == claimsFile {
			continue
		}
		s, err := read(file)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Named returns the built-in study of that name. The error of a wrong name
// says which there are.
func Named(name string) (*study.Study, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	known := make([]string, len(all))
	for i, s := range all {
		if s.Name == name {
			return s, nil
		}
		known[i] = s.Name
	}
	return nil, fmt.Errorf("no built-in study is called %q; %sthere are %s", name, shape.Meant(name, known), strings.Join(known, ", "))
}

// Claims returns the published claims in the order of the publications.
func Claims() ([]published.Claim, error) {
	data, err := files.ReadFile(claimsFile)
	if err != nil {
		return nil, fmt.Errorf("reading published claims: %w", err)
	}
	return published.Parse("studies/"+claimsFile, data)
}

func read(file string) (*study.Study, error) {
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading built-in study: %w", err)
	}
	s, err := study.Parse(path.Join("studies", file), data)
	if err != nil {
		return nil, err
	}
	if want := strings.TrimSuffix(file, ".yaml"); s.Name != want {
		return nil, fmt.Errorf("studies/%s: the study is called %q; a built-in study is called like its file", file, s.Name)
	}
	return s, nil
}
