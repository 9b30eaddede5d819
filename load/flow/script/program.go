package script

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"
)

// Program is a list of steps made flat: what a user does next is one number. It does not
// change and is safe for concurrent use.
type Program struct {
	Weight int // its share among the flows

	name string
	ops  []op
}

// op is one thing to do. Jumps go to the op at to.
type op struct {
	kind opKind
	to   int

	request *Request
	think   Think
	cond    *condition
	loop    int // which counter
	times   int // of a loop, at most
}

type opKind uint8

const (
	opRequest opKind = iota
	opThink
	opJump
	opUnless // jumps where cond is not so
	opReset  // sets the counter to 0
	opDone   // jumps where the counter has reached times
	opAgain  // counts, and jumps
)

// Request is a step that is sent.
type Request struct {
	Step      int  // which of [File.Steps]
	GoOn      bool // a failure does not end the flow
	NeedsBody bool // [Request.Look] looks at it

	method    string
	url, body template
	header    []headerField
	check     check
	takes     []take
}

type headerField struct {
	name  string
	value template
}

// check is a Check made ready.
type check struct {
	status   []int64
	contains string
	matches  *regexp.Regexp
	header   map[string]string
	json     []jsonCheck
}

type jsonCheck struct {
	path path
	want string
}

// take is a Source made ready.
type take struct {
	name           string
	slot           int
	json           path
	header, cookie string
	re             *regexp.Regexp
	optional       bool
}

// Walk is where a user is in a program. The zero value of all but Program is its beginning.
type Walk struct {
	Program *Program

	pc    int
	loops [deepest]int
}

// Next is what the user who knows these values does next: send a request, or without one
// think for a time. more is false at the end.
func (w *Walk) Next(known Values, rng *rand.Rand) (q *Request, think time.Duration, more bool) {
	for w.pc < len(w.Program.ops) {
		o := &w.Program.ops[w.pc]
		w.pc++
		switch o.kind {
		case opRequest:
			return o.request, 0, true
		case opThink:
			return nil, o.think.Draw(rng), true
		case opJump:
			w.pc = o.to
		case opUnless:
			if !o.cond.holds(known, rng) {
				w.pc = o.to
			}
		case opReset:
			w.loops[o.loop] = 0
		case opDone:
			if w.loops[o.loop] >= o.times {
				w.pc = o.to
			}
		case opAgain:
			w.loops[o.loop]++
			w.pc = o.to
		}
	}
	return nil, 0, false
}

// condition is a Condition made ready.
type condition struct {
	slot         int
	is, isNot    *string
	re           *regexp.Regexp
	above, below *float64
	set          *bool
	chance       float64
}

// holds reports whether it is so for a user who knows these values.
func (c *condition) holds(known Values, rng *rand.Rand) bool {
	if c.slot < 0 {
		return rng.Float64() < c.chance
	}
	v := known[c.slot]
	switch {
	case c.set != nil:
		return v.set == *c.set
	case c.isNot != nil:
		return !v.set || v.text != *c.isNot
	case !v.set:
		return false
	case c.is != nil:
		return v.text == *c.is
	case c.re != nil:
		return c.re.MatchString(v.text)
	}
	n, err := strconv.ParseFloat(v.text, 64)
	switch {
	case err != nil:
		return false
	case c.above != nil:
		return n > *c.above
	}
	return n < *c.below
}
