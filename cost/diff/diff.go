// Package diff compares two sets of profiles and tests each difference.
//
// Each side is profiled several times. The rows compared are the owners, by their
// own cost, and the functions within an owner, by what they and their callees
// cost there. A row is identified by owner and function, not by its place on the
// stack: another middleware shifts every stack below it.
//
// A row's difference is that of the two means. Its interval and p-value are
// Welch's, from the spread of the captures of each side, with a floor: a sampled
// stack count varies at least as a Poisson count does. Rank tests assume less, but
// five captures a side have too few orders to reject one row among hundreds. A row
// is reported as different if Benjamini and Hochberg's procedure keeps it at rate q:
// at most that share of the reported rows is false, on average.
//
// Captures of one process differ less than processes of one program do. So profile a
// fresh process for each capture, and let the two sides take turns.
package diff

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/tarehq/tare/cost"
)

// Capture is one profile and what it stands for.
type Capture struct {
	Stacks []cost.Stack // their Count is how often each was sampled, of allocations too
	Window cost.Window
}

// Options say what is distinguished.
type Options struct {
	// Q is the share of false findings among those reported that is allowed on
	// average; 0 means 0.05.
	Q float64
	// Least is the count of stacks, of all captures, that a row needs to be
	// tested; 0 means 10. Fewer could not differ, and would only make it harder to
	// tell the others apart.
	Least float64
}

// Result is what two sides differ by, in nanoseconds or bytes per Per.
type Result struct {
	Per       string  `json:"per"` // "request", "second" or "profile"
	CapturesA int     `json:"captures_a"`
	CapturesB int     `json:"captures_b"`
	Q         float64 `json:"q"`
	Total     Row     `json:"total"`     // of all rows; not one of those that Q is about
	Owners    []Row   `json:"owners"`    // their own cost; the largest difference first, those told apart before others
	Functions []Row   `json:"functions"` // with their callees within the owner; in the same order
	Warnings  []error `json:"-"`

	Paths []Path `json:"-"` // for a graph of both sides
}

// Row is one owner, or one function within it. Diff is B less A.
type Row struct {
	Kind     string  `json:"kind,omitempty"`
	Owner    string  `json:"owner,omitempty"`
	Where    string  `json:"where,omitempty"`   // the owner's file:line, as the last capture in which it was has it
	Package  string  `json:"package,omitempty"` // the owner's import path; the folder of its file where that is not known
	Function string  `json:"function,omitempty"`
	A        float64 `json:"a"`
	B        float64 `json:"b"`
	Diff     float64 `json:"diff"`
	Lo       float64 `json:"lo"` // of the 95 % interval of Diff
	Hi       float64 `json:"hi"`
	P        float64 `json:"p"`
	Tested   bool    `json:"tested"` // seen often enough
	Differs  bool    `json:"differs"`

	// File and Line are where the function, or the owner's, begins in the last capture that
	// has it; "" and 0 if that is not known.
	File string `json:"-"`
	Line int    `json:"-"`

	id key
}

// ErrNothing says that a side has no captures.
var ErrNothing = errors.New("no captures")

// Compare tells what b costs more or less than a. All captures must be of one
// kind.
func Compare(a, b []Capture, o Options) (*Result, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, ErrNothing
	}
	o.Q, o.Least = cmp.Or(o.Q, 0.05), cmp.Or(o.Least, 10)
	per, divisor := perWhat(slices.Concat(a, b))
	res := &Result{Per: per, CapturesA: len(a), CapturesB: len(b), Q: o.Q}
	s := newSums(slices.Concat(a, b), divisor)
	test := tester{s: s, a: len(a), o: o}
	res.Total = test.row(key{}, s.totals)
	for _, k := range s.keys {
		row := test.row(k, s.cells[k])
		if k.function == "" {
			res.Owners = append(res.Owners, row)
		} else {
			res.Functions = append(res.Functions, row)
		}
	}
	res.Total.Differs = res.Total.Tested && res.Total.P <= o.Q
	discover(res.Owners, o.Q)
	discover(res.Functions, o.Q)
	order(res.Owners)
	order(res.Functions)
	res.Paths = s.paths(res)
	res.warn(a, b)
	return res, nil
}

// perWhat chooses what all captures can be divided by.
func perWhat(all []Capture) (string, func(cost.Window) float64) {
	requests, seconds := true, true
	for _, c := range all {
		requests = requests && c.Window.Requests > 0
		seconds = seconds && c.Window.Duration > 0
	}
	switch {
	case requests:
		return "request", func(w cost.Window) float64 { return w.Requests }
	case seconds:
		return "second", func(w cost.Window) float64 { return w.Duration.Seconds() }
	}
	return "profile", func(cost.Window) float64 { return 1 }
}

// warn says what the result does not.
func (r *Result) warn(a, b []Capture) {
	if len(a) < 2 || len(b) < 2 {
		r.Warnings = append(r.Warnings, errors.New("one capture a side: the intervals rest on the number of stacks alone and exclude how much one program differs from run to run; repeat the captures"))
	} else if n := min(len(a), len(b)); n < 5 {
		r.Warnings = append(r.Warnings, fmt.Errorf("%d captures a side: reliable intervals need at least 5", n))
	}
	switch r.Per {
	case "second":
		r.Warnings = append(r.Warnings, errors.New("the requests were not counted, so costs are per second: a busier service costs more of everything"))
	case "profile":
		r.Warnings = append(r.Warnings, errors.New("neither requests nor durations are known, so tare compares the profiles as they are"))
	}
	if from, to := home(a), home(b); r.moved(from, to) {
		r.Warnings = append(r.Warnings, fmt.Errorf("owners of %s in A and of %s in B differ only by their folder, and tare compares them as different owners: build both sides in folders of the same name", from, to))
	}
}

// moved reports whether one program was built from two folders: package main is named
// by its folder, and has owners of the same names in files of the same names in either,
// one on either side alone.
func (r *Result) moved(from, to string) bool {
	if from == "" || to == "" || from == to {
		return false
	}
	type rest struct{ name, file string }
	gone := map[rest]bool{}
	for _, row := range r.Owners {
		if name, ok := strings.CutPrefix(row.Owner, from+"."); ok && row.B == 0 {
			gone[rest{name, path.Base(row.id.file)}] = true
		}
	}
	return slices.ContainsFunc(r.Owners, func(row Row) bool {
		name, ok := strings.CutPrefix(row.Owner, to+".")
		return ok && row.A == 0 && gone[rest{name, path.Base(row.id.file)}]
	})
}

// home returns the folder that a side's package main is named by; "" if none of its
// functions is on a stack.
func home(side []Capture) string {
	for _, c := range side {
		for _, s := range c.Stacks {
			if i := slices.IndexFunc(s.Frames, inMain); i >= 0 {
				name, _, _ := strings.Cut(s.Frames[i].Func, ".func")
				return strings.TrimSuffix(s.Frames[i].Name(), strings.TrimPrefix(name, "main"))
			}
		}
	}
	return ""
}

// inMain reports whether a function is known to be written in package main: a literal
// that has more than one function in its name may be another package's, inlined there.
func inMain(f cost.Frame) bool {
	fn, _, _ := strings.Cut(f.Func, ".func")
	name, ok := strings.CutPrefix(fn, "main.")
	return ok && f.File != "" && !strings.Contains(strings.Replace(name, ").", "", 1), ".")
}

// discover applies Benjamini and Hochberg's procedure: of m p-values in order, the
// largest k with p(k) ≤ q·k/m, and all before it.
//
// Source: Benjamini and Hochberg, Controlling the false discovery rate, 1995.
func discover(rows []Row, q float64) {
	tested := make([]*Row, 0, len(rows))
	for i := range rows {
		if rows[i].Tested {
			tested = append(tested, &rows[i])
		}
	}
	slices.SortFunc(tested, func(x, y *Row) int { return cmp.Compare(x.P, y.P) })
	last := -1
	for i, r := range tested {
		if r.P <= q*float64(i+1)/float64(len(tested)) {
			last = i
		}
	}
	for _, r := range tested[:last+1] {
		r.Differs = true
	}
}

// Tests is how many owners were seen often enough to be tested.
func (r *Result) Tests() int {
	n := 0
	for i := range r.Owners {
		if r.Owners[i].Tested {
			n++
		}
	}
	return n
}

// Near returns the owners whose own interval leaves out 0, and which are not told
// to differ, since among so many rows some do that by chance; the least likely to
// be chance first.
func (r *Result) Near() []Row {
	var near []Row
	for _, row := range r.Owners {
		if row.Tested && !row.Differs && row.P < 0.05 {
			near = append(near, row)
		}
	}
	slices.SortStableFunc(near, func(x, y Row) int { return cmp.Compare(x.P, y.P) })
	return near
}

// order puts first what differs, and then what differs most.
func order(rows []Row) {
	slices.SortFunc(rows, func(x, y Row) int {
		if x.Differs != y.Differs {
			if x.Differs {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(math.Abs(y.Diff), math.Abs(x.Diff)), cmp.Compare(x.Owner, y.Owner),
			cmp.Compare(x.Function, y.Function), cmp.Compare(x.Where, y.Where))
	})
}
