// Package tree reads a tree of JSON. It notes all that is wrong, each with the path of the
// value, and describes what it reads as a JSON Schema.
package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
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

// Value is what stands at a path, or nothing. With a schema it is what may stand there:
// whatever reads it describes what it wants, and gets nothing.
type Value struct {
	r      *reader
	path   string
	v      any
	Is     bool // something stands there
	schema *schema
}

// Read parses JSON. Of what is not, there is nothing, and a problem.
func Read(data []byte) Value {
	r := &reader{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	top := Value{r: r}
	err := dec.Decode(&top.v)
	if err == nil {
		if _, more := dec.Token(); more != io.EOF {
			err = errors.New("something follows the first value")
		}
	}
	if err != nil {
		top.Wrong("not JSON: %v", err)
		return top
	}
	top.Is = true
	return top
}

// Path is where the value stands, such as routes[0].host; empty: it is the whole.
func (v Value) Path() string { return v.path }

// JSON returns the value as JSON, of which equal values have the same.
func (v Value) JSON() string {
	text, err := json.Marshal(v.v)
	if err != nil {
		panic(fmt.Sprintf("tree: encoding what was decoded: %v", err))
	}
	return string(text)
}

// Problems returns all that is wrong in the tree so far.
func (v Value) Problems() Problems { return v.r.problems }

// Wrong notes that something is wrong with the value.
func (v Value) Wrong(format string, args ...any) {
	if v.schema != nil {
		return
	}
	v.r.problems = append(v.r.problems, Problem{Path: v.path, Text: fmt.Sprintf(format, args...)})
}

// Object returns the values of an object with these keys and no others. Those that are
// required end in an exclamation mark, which the result's keys do not have.
func (v Value) Object(keys ...string) map[string]Value {
	if v.schema != nil {
		return v.schema.object(v.r, keys)
	}
	all := map[string]Value{}
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = strings.TrimSuffix(k, "!")
		all[names[i]] = Value{r: v.r, path: join(v.path, names[i])}
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
		all[name] = Value{r: v.r, path: join(v.path, name), v: m[name], Is: true}
	}
	for _, k := range keys {
		if name, required := strings.CutSuffix(k, "!"); required && !all[name].Is {
			v.Wrong("lacks the key %s", name)
		}
	}
	return all
}

// Members returns the values of an object whose keys are the writer's own, by key in order.
func (v Value) Members(what string) (names []string, values []Value) {
	if v.schema != nil {
		return []string{"name"}, []Value{v.schema.members(v.r, what)}
	}
	m, ok := v.mapping(what)
	if !ok {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		at := Value{r: v.r, path: join(v.path, name), v: m[name], Is: true}
		if name == "" || strings.ContainsFunc(name, func(c rune) bool {
			return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		}) {
			at.Wrong("%q is not a name: use letters, digits, - and _", name)
			continue
		}
		names, values = append(names, name), append(values, at)
	}
	return names, values
}

func (v Value) mapping(want string) (map[string]any, bool) {
	if !v.Is {
		return nil, false
	}
	m, ok := v.v.(map[string]any)
	if !ok {
		v.Wrong("got %s; want a mapping with %s", v.describe(), want)
	}
	if v.r.values += len(m); v.r.values > mostValues {
		v.Wrong("the file says too much; at most %d values", mostValues)
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

// List returns the values of a list.
func (v Value) List() []Value {
	if v.schema != nil {
		return []Value{v.schema.list(v.r)}
	}
	if !v.Is {
		return nil
	}
	s, ok := v.v.([]any)
	if !ok {
		v.Wrong("got %s; want a list", v.describe())
	}
	if v.r.values += len(s); v.r.values > mostValues {
		v.Wrong("the file says too much; at most %d values", mostValues)
		return nil
	}
	all := make([]Value, len(s))
	for i, x := range s {
		all[i] = Value{r: v.r, path: v.path + "[" + strconv.Itoa(i) + "]", v: x, Is: true}
	}
	return all
}

// Text returns a text, "" if there is none; want says what it is to be.
func (v Value) Text(want string, ok func(string) bool) string {
	if v.schema != nil {
		*v.schema = schema{Type: "string", Description: want}
		return ""
	}
	if !v.Is {
		return ""
	}
	s, is := v.v.(string)
	if !is || !ok(s) {
		v.Wrong("got %s; want %s", v.describe(), want)
		return ""
	}
	return s
}

// Texts returns a list of texts.
func (v Value) Texts(want string, ok func(string) bool) (all []string) {
	for _, s := range v.List() {
		all = append(all, s.Text(want, ok))
	}
	return all
}

// Prefixes returns a list of addresses and networks.
func (v Value) Prefixes() (all []netip.Prefix) {
	for _, s := range v.Texts("an address or a network, such as 10.0.0.0/8", func(s string) bool { _, ok := ParsePrefix(s); return ok }) {
		if p, ok := ParsePrefix(s); ok {
			all = append(all, p)
		}
	}
	return all
}

// ParsePrefix reads an address or a network.
func ParsePrefix(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(s)
	return netip.PrefixFrom(a, a.BitLen()), err == nil && a.Zone() == ""
}

// OneOf returns one of a few words, the empty one if there is none.
func OneOf[T ~string](v Value, words ...T) T {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	if v.schema != nil {
		*v.schema = schema{Type: "string", Enum: names}
		return ""
	}
	return T(v.Text("one of "+strings.Join(names, ", "), func(s string) bool { return slices.Contains(words, T(s)) }))
}

// Integer returns a whole number, 0 if there is none.
func (v Value) Integer(lo, hi int) int {
	if v.schema != nil {
		*v.schema = schema{Type: "integer", Minimum: &lo, Maximum: &hi}
		return 0
	}
	if !v.Is {
		return 0
	}
	n, is := v.v.(json.Number)
	i, err := strconv.Atoi(n.String())
	if !is || err != nil || i < lo || i > hi {
		v.Wrong("got %s; want a whole number from %d to %d", v.describe(), lo, hi)
		return 0
	}
	return i
}

// Bytes returns a size in bytes from 1 on, 0 if there is none. It may have a unit.
func (v Value) Bytes(hi int) int {
	if v.schema != nil {
		*v.schema = schema{Description: "a number of bytes, or a size such as 8MiB", Pattern: `^[0-9]+ ?[KMG]iB$`} // which numbers need not match
		return 0
	}
	s, is := v.v.(string)
	if !is {
		return v.Integer(1, hi)
	}
	for unit, size := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		digits, ok := strings.CutSuffix(s, unit)
		if n, err := strconv.Atoi(strings.TrimSuffix(digits, " ")); ok && err == nil && n > 0 && n <= hi/size {
			return n * size
		}
	}
	v.Wrong("got %s; want a number of bytes up to %d, or a size such as 8MiB", v.describe(), hi)
	return 0
}

// Percent returns a share from 0 to 1, 0 if there is none.
func (v Value) Percent() float64 {
	defer v.schema.matches(`^[0-9]*\.?[0-9]+ *%$`)
	s := v.Text("a percentage from 0% to 100%, such as 50%", func(s string) bool {
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

// Duration returns a duration, 0 if there is none.
func (v Value) Duration(lo, hi time.Duration) time.Duration {
	defer v.schema.matches(`^(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$`)
	s := v.Text(fmt.Sprintf("a duration from %s to %s, such as 300ms or 2s", lo, hi), func(s string) bool {
		d, err := time.ParseDuration(s)
		return err == nil && d >= lo && d <= hi
	})
	if s == "" {
		return 0
	}
	d, _ := time.ParseDuration(s)
	return d
}

// Boolean returns true or false, false if there is none.
func (v Value) Boolean() bool {
	if v.schema != nil {
		*v.schema = schema{Type: "boolean"}
		return false
	}
	if !v.Is {
		return false
	}
	b, ok := v.v.(bool)
	if !ok {
		v.Wrong("got %s; want true or false", v.describe())
	}
	return b
}

// describe says what a value is, for "got …".
func (v Value) describe() string {
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
