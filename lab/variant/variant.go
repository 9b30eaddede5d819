// Package variant builds one Go program in other ways, without touching its source.
//
// A variant is a word such as "pgo", "serve", "go1.25.4" or "gin@v1.9.1". [Parse]
// reads it; [Apply] turns variants into flags and environment for go build. Files
// that such a build needs (a go.mod, an overlay, a profile) lie in a working folder
// of the caller's. The program's own files are never written.
//
// Not for programs that are there already: they are what they are.
package variant

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Kind says what a variant changes.
type Kind string

// The kinds.
const (
	PGO         Kind = "pgo"         // compile with a CPU profile of the program under load
	Serve       Kind = "serve"       // serve.Server in place of every http.Server
	Toolchain   Kind = "toolchain"   // another version of Go
	Requirement Kind = "requirement" // another version of a module that the program requires
)

// Variant is one change to a build. It is a value, safe for concurrent use.
type Variant struct {
	Kind    Kind
	Module  string // Requirement: a module's path, or the last element of one
	Version string // Toolchain: such as go1.25.4; Requirement: such as v1.9.1
}

// String returns the word that Parse reads.
func (v Variant) String() string {
	switch v.Kind {
	case Toolchain:
		return v.Version
	case Requirement:
		return v.Module + "@" + v.Version
	}
	return string(v.Kind)
}

var (
	toolchainWord   = regexp.MustCompile(`^go[0-9]+\.[0-9]+(\.[0-9]+|(rc|beta)[0-9]+)?$`)
	requirementWord = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._~/-]*)@([A-Za-z0-9][A-Za-z0-9._+-]*)$`)
	bareVersion     = regexp.MustCompile(`^[0-9]+\.[0-9.]+`)
)

// errWord says what a variant may be.
var errWord = errors.New("want pgo, serve, a Go version such as go1.25.4, or a module at a version such as gin@v1.9.1")

// Parse reads one variant.
func Parse(word string) (Variant, error) {
	switch {
	case word == string(PGO), word == string(Serve):
		return Variant{Kind: Kind(word)}, nil
	case toolchainWord.MatchString(word):
		return Variant{Kind: Toolchain, Version: word}, nil
	}
	if m := requirementWord.FindStringSubmatch(word); m != nil {
		if bareVersion.MatchString(m[2]) {
			return Variant{}, fmt.Errorf("%q is not a variant: versions of modules begin with a v: %s@v%s", word, m[1], m[2])
		}
		return Variant{Kind: Requirement, Module: m[1], Version: m[2]}, nil
	}
	return Variant{}, fmt.Errorf("%q is not a variant: %w", word, errWord)
}

// ParseAll reads several variants of one build: at most one of each kind, but any
// number of requirements.
func ParseAll(words []string) ([]Variant, error) {
	var all []Variant
	seen := map[string]string{}
	for _, word := range words {
		v, err := Parse(word)
		if err != nil {
			return nil, err
		}
		what := strings.TrimSpace(string(v.Kind) + " " + v.Module)
		if first, ok := seen[what]; ok {
			return nil, fmt.Errorf("%s and %s change the same thing: leave one out", first, word)
		}
		seen[what] = word
		all = append(all, v)
	}
	return all, nil
}
