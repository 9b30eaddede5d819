package pattern

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// Constraint narrows the values of a wildcard. A nil constraint allows all.
type Constraint struct {
	Spec  string // as it was written
	test  func(string) bool
	exact *syntax.Prog // accepts what test does; for int and uint, also numbers too big
}

// Allows reports whether a wildcard may have this value, unescaped.
func (c *Constraint) Allows(value string) bool { return c == nil || c.test(value) }

// wordKind describes a constraint that is named by a word.
type wordKind struct {
	expr string
	test func(string) bool
}

func wordKinds(word string) (wordKind, bool) {
	switch word {
	case "int":
		return wordKind{`-?[0-9]+`, isInt}, true
	case "uint":
		return wordKind{`[0-9]+`, isUint}, true
	case "alpha":
		return wordKind{`[A-Za-z]+`, isAlpha}, true
	case "alnum":
		return wordKind{`[0-9A-Za-z]+`, isAlnum}, true
	case "hex":
		return wordKind{`[0-9A-Fa-f]+`, isHex}, true
	case "uuid":
		return wordKind{`[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`, isUUID}, true
	default:
		return wordKind{}, false
	}
}

// newConstraint reads a constraint. One that is a single word names a kind of
// value, so that a slip of the pen is an error; any other is a regular
// expression for the whole value.
func newConstraint(spec string) (*Constraint, error) {
	if spec == "" {
		return nil, errors.New("nothing after the colon")
	}
	if k, ok := wordKinds(spec); ok {
		prog, err := program(k.expr)
		if err != nil {
			return nil, err
		}
		return &Constraint{spec, k.test, prog}, nil
	}
	if isAlnum(spec) {
		return nil, fmt.Errorf("unknown kind %q: there are int, uint, alpha, alnum, hex and uuid; for a value that is this very word write (%s)", spec, spec)
	}
	prog, err := program(spec)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(`^(?:` + spec + `)$`)
	if err != nil {
		return nil, err
	}
	c := &Constraint{spec, re.MatchString, prog}
	if _, ok := witness(c, nil); !ok {
		return nil, fmt.Errorf("no path segment can match %q", spec)
	}
	return c, nil
}

// program compiles an expression for finding out what two of them have in
// common, which excludes conditions on what surrounds a character.
func program(expr string) (*syntax.Prog, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	for i := range prog.Inst {
		if prog.Inst[i].Op == syntax.InstEmptyWidth {
			return nil, errors.New(`^, $, \A, \z, \b and \B are not needed and not supported: the whole value must match`)
		}
	}
	return prog, nil
}

func isInt(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if all(digits, isDigit) && len(digits) < 19 {
		return digits != ""
	}
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil && s[0] != '+'
}

func isUint(s string) bool {
	if all(s, isDigit) && len(s) < 20 {
		return s != ""
	}
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

func isAlpha(s string) bool { return s != "" && all(s, isLetter) }
func isHex(s string) bool   { return s != "" && all(s, isHexDigit) }
func isAlnum(s string) bool {
	return s != "" && all(s, func(c byte) bool { return isDigit(c) || isLetter(c) })
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHexDigit(s[i]) {
				return false
			}
		}
	}
	return true
}

func all(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if !is(s[i]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isLetter(c byte) bool   { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
