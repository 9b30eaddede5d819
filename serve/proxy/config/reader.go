package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Problem is one thing wrong in a file.
type Problem struct {
	Path string `json:"path"` // of the value, such as routes[0].host; empty: the whole
	Text string `json:"text"` // what is wrong; what is allowed
}

// Error gives the problem as path: text.
func (p Problem) Error() string {
	if p.Path == "" {
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// Problems are all that is wrong in one file.
type Problems []Problem

// Error gives one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// mostValues bounds how much one file can say.
const mostValues = 100_000

// reader reads a tree of JSON and notes every problem.
type reader struct {
	problems Problems
	values   int
}

// value is what stands at a path, or nothing.
type value struct {
	r    *reader
	path string
	v    any
	is   bool
}

// read parses JSON.
func (r *reader) read(data []byte) value {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	top := value{r: r}
	err := dec.Decode(&top.v)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("something follows the first value")
		}
	}
	if err != nil {
		top.wrong("not JSON: %v", err)
		return top
	}
	top.is = true
	return top
}

func (v value) wrong(format string, args ...any) {
	v.r.problems = append(v.r.problems, Problem{Path: v.path, Text: fmt.Sprintf(format, args...)})
}

// object returns the values of an object with these keys and no others. Those that are
// required end in an exclamation mark, which the result's keys do not have.
func (v value) object(keys ...string) map[string]value {
	all := map[string]value{}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = strings.TrimSuffix(k, "!")
		all[names[i]] = value{r: v.r, path: join(v.path, names[i])}
	}
	m, ok := v.mapping("the keys " + strings.Join(names, ", "))
	if !ok {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, known := all[name]; !known {
			v.r.problems = append(v.r.problems, Problem{Path: join(v.path, name),
				Text: fmt.Sprintf("there is no key %q; allowed: %s", name, strings.Join(names, ", "))})
			continue
		}
		all[name] = value{v.r, join(v.path, name), m[name], true}
	}
	for _, k := range keys {
		if name, required := strings.CutSuffix(k, "!"); required && !all[name].is {
			v.wrong("lacks the key %s", name)
		}
	}
	return all
}

// members returns the values of an object whose keys are the writer's own, by key in order.
func (v value) members(what string) (names []string, values []value) {
	m, ok := v.mapping(what)
	if !ok {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		at := value{v.r, join(v.path, name), m[name], true}
		if name == "" || strings.ContainsFunc(name, func(c rune) bool {
			return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		}) {
			at.wrong("%q is not a name: use letters, digits, - and _", name)
			continue
		}
		names, values = append(names, name), append(values, at)
	}
	return names, values
}

func (v value) mapping(want string) (map[string]any, bool) {
	if !v.is {
		return nil, false
	}
	m, ok := v.v.(map[string]any)
	if !ok {
		v.wrong("got %s; want a mapping with %s", v.describe(), want)
	}
	if v.r.values += len(m); v.r.values > mostValues {
		v.wrong("the file says too much; at most %d values", mostValues)
		return nil, false
	}
	return m, ok
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// list returns the values of a list.
func (v value) list() []value {
	if !v.is {
		return nil
	}
	s, ok := v.v.([]any)
	if !ok {
		v.wrong("got %s; want a list", v.describe())
	}
	if v.r.values += len(s); v.r.values > mostValues {
		v.wrong("the file says too much; at most %d values", mostValues)
		return nil
	}
	all := make([]value, len(s))
	for i, x := range s {
		all[i] = value{v.r, v.path + "[" + strconv.Itoa(i) + "]", x, true}
	}
	return all
}

// text returns a text, "" if there is none; want says what it is to be.
func (v value) text(want string, ok func(string) bool) string {
	if !v.is {
		return ""
	}
	s, is := v.v.(string)
	if !is || !ok(s) {
		v.wrong("got %s; want %s", v.describe(), want)
		return ""
	}
	return s
}

// oneOf returns one of a few words, the empty one if there is none.
func oneOf[T ~string](v value, words ...T) T {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	return T(v.text("one of "+strings.Join(names, ", "), func(s string) bool { return slices.Contains(words, T(s)) }))
}

// integer returns a whole number, 0 if there is none.
func (v value) integer(lo, hi int) int {
	if !v.is {
		return 0
	}
	n, is := v.v.(json.Number)
	i, err := strconv.Atoi(n.String())
	if !is || err != nil || i < lo || i > hi {
		v.wrong("got %s; want a whole number from %d to %d", v.describe(), lo, hi)
		return 0
	}
	return i
}

// percent returns a share from 0 to 1, 0 if there is none.
func (v value) percent() float64 {
	s := v.text("a percentage from 0% to 100%, such as 50%", func(s string) bool {
		f, ok := parsePercent(s)
		return ok && f >= 0 && f <= 1
	})
	f, _ := parsePercent(s)
	return f
}

func parsePercent(s string) (float64, bool) {
	digits, ok := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	return f / 100, ok && err == nil
}

// duration returns a duration, 0 if there is none.
func (v value) duration(lo, hi time.Duration) time.Duration {
	s := v.text(fmt.Sprintf("a duration from %s to %s, such as 300ms or 2s", lo, hi), func(s string) bool {
		d, err := time.ParseDuration(s)
		return err == nil && d >= lo && d <= hi
	})
	if s == "" {
		return 0
	}
	d, _ := time.ParseDuration(s)
	return d
}

func (v value) boolean() bool {
	if !v.is {
		return false
	}
	b, ok := v.v.(bool)
	if !ok {
		v.wrong("got %s; want true or false", v.describe())
	}
	return b
}

// describe says what a value is, for "got …".
func (v value) describe() string {
	switch x := v.v.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		if cut := 60; len(x) > cut {
			x = strings.ToValidUTF8(x[:cut], "") + "…"
		}
		return strconv.Quote(x)
	case json.Number:
		return "the number " + x.String()
	}
	return fmt.Sprint(v.v)
}
