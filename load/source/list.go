package source

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ParseList reads a list of requests, a line each as [ParseLine] has it. An empty line
// and one that begins with # is none. Errors are of name:line.
func ParseList(name, text string) ([]Request, error) {
	var all []Request
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) { // as editors of some systems begin a file
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		at := fmt.Sprintf("%s:%d", name, n)
		r, err := ParseLine(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		r.At = at
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no line names a request", name)
	}
	return all, nil
}

// ParseLine reads [METHOD ]URL[ WEIGHT]. The URL is not looked at: it may be a path. A
// first word in capitals is a method.
func ParseLine(line string) (Request, error) {
	words := strings.Fields(line)
	var r Request
	if len(words) > 0 && isMethod(words[0]) {
		r.Method, words = words[0], words[1:]
	}
	if len(words) == 0 {
		return r, errors.New("a request is written [METHOD] URL [WEIGHT], and here is no URL")
	}
	r.Path, words = words[0], words[1:]
	if len(words) == 0 {
		return r, nil
	}
	weight, err := strconv.Atoi(words[0])
	if err != nil || weight < 1 || len(words) > 1 {
		return r, fmt.Errorf("weight %q: want a whole number of at least 1", strings.Join(words, " "))
	}
	r.Weight = weight
	return r, nil
}

func isMethod(word string) bool {
	return word == strings.ToUpper(word) && word != strings.ToLower(word) && !strings.ContainsAny(word, "/:.{")
}
