package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A path in JSON: keys joined by dots, [0] the first of a list, [-1] the last, [any] any.
const (
	jsonPath = `^(\$\.?)?([^.\[\]\s]+|\[(-?[0-9]{1,6}|any)\])(\.[^.\[\]\s]+|\[(-?[0-9]{1,6}|any)\])*$`
	wantPath = "a path such as id, items[0].id or items[any].id"
)

// path leads to a value in JSON.
type path []hop

// hop is a key, or an element of a list: at, any of them where anyOf.
type hop struct {
	key   string
	at    int
	list  bool
	anyOf bool
}

var pathForm = regexp.MustCompile(jsonPath)

func parsePath(s string) (path, error) {
	if !pathForm.MatchString(s) {
		return nil, fmt.Errorf("%q is not %s", s, wantPath)
	}
	s = strings.TrimPrefix(strings.TrimPrefix(s, "$"), ".")
	var p path
	for s != "" {
		if rest, list := strings.CutPrefix(s, "["); list {
			index, after, _ := strings.Cut(rest, "]")
			n, err := strconv.Atoi(index)
			p = append(p, hop{at: n, list: true, anyOf: err != nil})
			s = strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(s, ".[")
		if end < 0 {
			end = len(s)
		}
		p = append(p, hop{key: s[:end]})
		s = strings.TrimPrefix(s[end:], ".")
	}
	return p, nil
}

// of is the value at p as text; false where there is none, or null. Lists and objects are
// their JSON.
func (p path) of(v any, rng *rand.Rand) (string, bool) {
	for _, h := range p {
		switch at := v.(type) {
		case map[string]any:
			if h.list {
				return "", false
			}
			v = at[h.key]
		case []any:
			i := h.at
			switch {
			case !h.list || len(at) == 0:
				return "", false
			case h.anyOf:
				i = rng.IntN(len(at))
			case i < 0:
				i += len(at)
			}
			if i < 0 || i >= len(at) {
				return "", false
			}
			v = at[i]
		default:
			return "", false
		}
	}
	switch t := v.(type) {
	case nil:
		return "", false
	case string:
		return t, true
	case json.Number:
		return t.String(), true
	case bool:
		return strconv.FormatBool(t), true
	}
	text, err := json.Marshal(v)
	return string(text), err == nil
}

// answer is what checks and values look at.
type answer struct {
	*http.Response
	body    []byte
	cookies []*http.Cookie // kept for the URL
	decoded any
	read    bool // the JSON was
}

var errNotJSON = errors.New("the body is not JSON")

// json is the body's, read once.
func (a *answer) json() (any, error) {
	if !a.read {
		a.read = true
		d := json.NewDecoder(bytes.NewReader(a.body))
		d.UseNumber()
		if err := d.Decode(&a.decoded); err != nil {
			a.decoded = errNotJSON
		} else if _, err := d.Token(); err != io.EOF {
			a.decoded = errNotJSON
		}
	}
	if err, wrong := a.decoded.(error); wrong {
		return nil, err
	}
	return a.decoded, nil
}

// verify tells what of a check does not hold; nil is all does.
func (c *check) verify(a *answer, rng *rand.Rand) error {
	switch {
	case len(c.status) > 0 && !slices.Contains(c.status, int64(a.StatusCode)):
		return fmt.Errorf("status %d is not among %v", a.StatusCode, c.status)
	case len(c.status) == 0 && a.StatusCode >= 400:
		return fmt.Errorf("status %d", a.StatusCode)
	case !bytes.Contains(a.body, []byte(c.contains)):
		return fmt.Errorf("the body does not contain %q", c.contains)
	case c.matches != nil && !c.matches.Match(a.body):
		return fmt.Errorf("the body does not match %s", c.matches)
	}
	for name, want := range c.header {
		if got := a.Header.Values(name); !slices.Contains(got, want) {
			return fmt.Errorf("header %s is %q, not %q", name, got, want)
		}
	}
	for _, k := range c.json {
		v, err := a.json()
		if err != nil {
			return err
		}
		if got, ok := k.path.of(v, rng); !ok || got != k.want {
			return fmt.Errorf("in JSON there is %q, not %q", got, k.want)
		}
	}
	return nil
}

// from takes the value from an answer; false where it is not there.
func (t *take) from(a *answer, rng *rand.Rand) (string, bool) {
	switch {
	case t.header != "":
		got := a.Header.Values(t.header)
		if len(got) == 0 {
			return "", false
		}
		return got[0], true
	case t.cookie != "":
		for _, c := range append(a.Cookies(), a.cookies...) {
			if c.Name == t.cookie {
				return c.Value, true
			}
		}
		return "", false
	case t.re != nil:
		m := t.re.FindSubmatch(a.body)
		if m == nil {
			return "", false
		}
		text := m[min(1, len(m)-1)]
		return string(text), text != nil // nil: the group took no part in the match
	}
	v, err := a.json()
	if err != nil {
		return "", false
	}
	return t.json.of(v, rng)
}
