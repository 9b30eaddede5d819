package script

import (
	"errors"
	"net/url"
	"strings"
)

// ErrUnfilled says that a request cannot be sent for want of a value.
var ErrUnfilled = errors.New("no value fills a field")

// template is text with fields to fill.
type template []piece

// piece is fixed text, or the value of a slot.
type piece struct {
	text string
	slot int // negative: text
}

// Values are what a user knows, by slot.
type Values []value

type value struct {
	text string
	set  bool
}

// parseTemplate cuts text at its {{.name}} fields, whose slots slot tells.
func parseTemplate(text string, slot func(name string) (int, error)) (template, error) {
	var t template
	for {
		before, rest, found := strings.Cut(text, "{{")
		if before != "" {
			t = append(t, piece{before, -1})
		}
		if !found {
			return t, nil
		}
		inner, after, closed := strings.Cut(rest, "}}")
		name, dotted := strings.CutPrefix(strings.TrimSpace(inner), ".")
		if !closed || !dotted || name == "" {
			return nil, errors.New("{{ opens no field; write {{.name}}")
		}
		i, err := slot(name)
		if err != nil {
			return nil, err
		}
		t = append(t, piece{slot: i})
		text = after
	}
}

// fill is t with its fields filled; escape percent-encodes the values. The error is
// ErrUnfilled where a value is unset.
func (t template) fill(known Values, escape bool) (string, error) {
	if len(t) == 1 && t[0].slot < 0 {
		return t[0].text, nil
	}
	var b strings.Builder
	for _, p := range t {
		switch {
		case p.slot < 0:
			b.WriteString(p.text)
		case !known[p.slot].set:
			return "", ErrUnfilled
		case escape:
			b.WriteString(strings.ReplaceAll(url.QueryEscape(known[p.slot].text), "+", "%20"))
		default:
			b.WriteString(known[p.slot].text)
		}
	}
	return b.String(), nil
}
