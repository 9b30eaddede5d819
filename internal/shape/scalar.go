package shape

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// scalar is a single value; want says in words what may stand there.
func scalar[V any](s Schema, want string, parse func(ast.Node) (V, bool)) Of[V] {
	return Of[V]{s, func(r *Reader, at Place, into *V) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		v, ok := parse(n)
		if !ok {
			r.Misread(at.path, "%s: got %s; want %s", Last(at.path), describe(n), want)
			return
		}
		*into = v
	}}
}

// Text is a value written as text, numbers with units among it; want says in words what
// may stand there.
func Text[V any](s Schema, want string, parse func(string) (V, bool)) Of[V] {
	return scalar(s, want, func(n ast.Node) (v V, ok bool) {
		text, ok := written(n)
		if !ok {
			return v, false
		}
		return parse(text)
	})
}

// Figure is text or a plain number, which parse gets as it is written.
func Figure[V any](want string, parse func(string) (V, bool)) Of[V] {
	return scalar(Schema{Type: []string{"string", "number"}}, want, func(n ast.Node) (v V, ok bool) {
		s, ok := written(n)
		if _, number := numeric(n); number {
			s, ok = text(n), true
		}
		if !ok {
			return v, false
		}
		return parse(s)
	})
}

// written is a scalar that YAML takes for text.
func written(n ast.Node) (string, bool) {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return strings.TrimSuffix(text(n), "\n"), true
	}
	return "", false
}

// Content is text that is sent or looked for as it is, the end of its last line
// included.
func Content() Of[string] {
	return scalar(Schema{Type: "string", MinLength: 1}, "text (numbers and true or false in quotes)", func(n ast.Node) (string, bool) {
		_, ok := written(n)
		s := text(n)
		return s, ok && s != ""
	})
}

// Words is text for people, of one line or several. Written by somebody else, it
// could steer the terminal that it is shown on.
func Words() Of[string] {
	return shown(`^[^\x00-\x08\x0b-\x1f\x7f-\x9f]+$`, "text without control characters (numbers and true or false in quotes)")
}

// Line is text for people in one line.
func Line() Of[string] {
	return shown(`^[^\x00-\x1f\x7f-\x9f]+$`, "one line of text without control characters (numbers and true or false in quotes)")
}

// shown is text of a given form. The marks that turn the direction of writing
// make a text look like another one; the form leaves them out, since Go and
// JavaScript write them differently in patterns.
func shown(pattern, want string) Of[string] {
	form := Matching(pattern, want)
	return Of[string]{form.schema, func(r *Reader, at Place, into *string) {
		var s string
		form.read(r, at, &s)
		if strings.ContainsFunc(s, func(c rune) bool { return unicode.Is(unicode.Bidi_Control, c) }) {
			r.Misread(at.path, "%s: %q changes the direction of writing: remove those marks", Last(at.path), s)
			return
		}
		*into = s
	}}
}

// Argument is what a program is told by: it cannot hold the byte that ends it.
func Argument() Of[string] { return Word(`^[^\x00]+$`) }

// Word is an argument of a pattern, which may allow none of it.
func Word(pattern string) Of[string] {
	return Matching(pattern, "text without the character NUL (numbers and true or false in quotes)")
}

// Address is the base URL of what is running. What is wrong about one with
// credentials is said without showing them.
func Address() Of[string] {
	const pattern = `^https?://[^\s/?#@\x00-\x1f\x7f]+/?$`
	re := regexp.MustCompile(pattern)
	return Of[string]{Schema{Type: "string", Pattern: pattern}, func(r *Reader, at Place, into *string) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		s, ok := written(n)
		switch {
		case strings.Contains(s, "@"):
			r.Misread(at.path, "%s: credentials in a URL are not sent; give the targets a header, such as Authorization: \"${TOKEN}\", which is taken from the environment and not kept", Last(at.path))
		case !ok || !re.MatchString(s):
			r.Misread(at.path, "%s: got %s; want http:// or https://, host and port, no path, such as http://127.0.0.1:8080", Last(at.path), describe(n))
		default:
			*into = s
		}
	}}
}

// Matching is text of a given form.
func Matching(pattern, want string) Of[string] {
	re := regexp.MustCompile(pattern)
	return scalar(Schema{Type: "string", Pattern: pattern}, want, func(n ast.Node) (string, bool) {
		s, ok := written(n)
		return s, ok && re.MatchString(s)
	})
}

// OneOf is one of a few words.
func OneOf[V ~string](what string, values ...V) Of[V] {
	known := make([]string, len(values))
	for i, v := range values {
		known[i] = string(v)
	}
	return Of[V]{Schema{Type: "string", Enum: known}, func(r *Reader, at Place, into *V) {
		n := r.arrive(at)
		if n == nil {
			return
		}
		s, ok := written(n)
		if ok && slices.Contains(known, s) {
			*into = V(s)
			return
		}
		r.Misread(at.path, "%s: got %s; %s", Last(at.path), describe(n), Choice(s, what, known))
	}}
}

// Or is text of a given form, or else a value of the shape, whose messages it has. No text
// is both.
func (s Of[V]) Or(pattern string, parse func(string) V) Of[V] {
	re := regexp.MustCompile(pattern)
	return Of[V]{Schema{OneOf: []Schema{s.schema, {Type: "string", Pattern: pattern}}}, func(r *Reader, at Place, into *V) {
		if text, ok := written(at.node); ok && re.MatchString(text) && r.arrive(at) != nil {
			*into = parse(text)
			return
		}
		s.read(r, at, into)
	}}
}

// Choice says what is allowed, and what was meant if that is clear.
func Choice(word, what string, known []string) string {
	return fmt.Sprintf("%s%s: %s", Meant(word, known), what, strings.Join(known, ", "))
}

// Integer is a whole number from lo to hi, neither negative.
func Integer[V ~int | ~int64](lo, hi V) Of[V] {
	s := Schema{Type: "integer", Minimum: new(float64(lo)), Maximum: new(float64(hi))}
	return scalar(s, fmt.Sprintf("a whole number from %d to %d", lo, hi), func(n ast.Node) (V, bool) {
		i, ok := n.(*ast.IntegerNode)
		if !ok {
			return 0, false
		}
		u, ok := i.Value.(uint64) // the parser's type for what is not negative
		return V(u), ok && !octal(n) && u <= math.MaxInt64 && V(u) >= lo && V(u) <= hi
	})
}

// Number is any finite number.
func Number() Of[float64] { return scalar(Schema{Type: "number"}, "a number", numeric) }

func numeric(n ast.Node) (float64, bool) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		v, err := strconv.ParseFloat(text(n), 64)
		return v, err == nil && !octal(n) && !math.IsInf(v, 0)
	}
	return 0, false
}

// octal reports whether a whole number begins with a 0, which YAML 1.1 takes for one to
// the base of 8 and YAML 1.2 does not: its writer may have meant either.
func octal(n ast.Node) bool {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return false
	}
	digits := strings.TrimLeft(text(i), "+-")
	return len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'
}

// Boolean is true or false.
func Boolean() Of[bool] {
	return scalar(Schema{Type: "boolean"}, "true or false", func(n ast.Node) (bool, bool) {
		b, ok := n.(*ast.BoolNode)
		return ok && b.Value, ok
	})
}

// Duration is a time from lo to hi, such as 1m30s.
func Duration(lo, hi time.Duration) Of[time.Duration] {
	want := fmt.Sprintf("a duration from %s to %s, such as 300ms, 2s or 1m30s", brief(lo), brief(hi))
	return scalar(Schema{Type: "string", Pattern: "^" + unit.WrittenDuration + "$"}, want, func(n ast.Node) (time.Duration, bool) {
		s, _ := written(n)
		d, err := unit.ParseDuration(s)
		return d, err == nil && d >= lo && d <= hi
	})
}

// brief writes 1h for what String calls 1h0m0s.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Percent is a share, read as a number from 0 to 1.
func Percent() Of[float64] {
	return percentage("a percentage above 0% and up to 100%, such as 1%", 1)
}

// Ratio is a percentage of something else, which may be above 100 %.
func Ratio() Of[float64] { return percentage("a percentage above 0%, such as 69%", math.Inf(1)) }

// percentage is a share above 0 and up to most.
func percentage(want string, most float64) Of[float64] {
	return scalar(Schema{Type: "string", Pattern: "^" + unit.Digits + " ?%$"}, want, func(n ast.Node) (float64, bool) {
		s, _ := written(n)
		v, base, err := unit.Parse(s)
		return v, err == nil && base == unit.Share && v > 0 && v <= most
	})
}

// Measured is a quantity; its unit is kept for the checks.
func Measured() Of[float64] {
	s := Schema{Type: []string{"string", "number"}, Pattern: "^" + unit.Written + "$"}
	one := scalar(s, "a number with its unit, such as 159 µs, 8.2 MB, 52400/s, 12% or 3.8", func(n ast.Node) (bound.Bound, bool) {
		v, base, err := unit.Parse(text(n))
		return bound.Bound{Value: v, Unit: base}, err == nil
	})
	return Of[float64]{s, func(r *Reader, at Place, into *float64) {
		var q bound.Bound
		one.read(r, at, &q)
		*into, r.Quantities[at.path] = q.Value, q
	}}
}

// Limit is a bound such as ">= 10000", read to where its two parts belong; its
// unit is kept for the checks.
func Limit[T any](to func(*T) (op *string, at **float64)) Of[T] {
	s := Schema{Type: "string", Pattern: bound.Pattern}
	one := scalar(s, `a bound in quotes, such as ">= 10000" or "<= 5 ms"`, func(n ast.Node) (bound.Bound, bool) {
		s, _ := written(n)
		b, err := bound.ParseBound(s)
		return b, err == nil
	})
	return Of[T]{s, func(r *Reader, at Place, into *T) {
		var b bound.Bound
		one.read(r, at, &b)
		if b.Op != "" {
			op, value := to(into)
			*op, *value, r.Quantities[at.path] = string(b.Op), &b.Value, b
		}
	}}
}

// Anything is a text, number or truth of a list of facts.
func Anything() Of[any] {
	return scalar(Schema{Type: []string{"string", "number", "boolean"}}, "a text, a number, true or false", func(n ast.Node) (any, bool) {
		switch v := n.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
			f, ok := numeric(v)
			if _, whole := v.(*ast.IntegerNode); whole && math.Abs(f) >= 1<<53 {
				return text(v), ok // a float64 would be another number
			}
			return f, ok
		case *ast.BoolNode:
			return v.Value, true
		}
		return written(n)
	})
}
