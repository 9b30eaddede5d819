package http1_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// A row of testdata/differences.tsv: a class of inputs that ours and net/http
// read differently, or the id of a case on which ours and its authors disagree.
type row struct {
	sign, what, expected, theirs, ours, why, leniency string
}

func (r row) String() string {
	return strings.Join([]string{r.sign, r.what, r.expected, r.theirs, r.ours, r.why, r.leniency}, "\t")
}

func tsv(t testing.TB, name string, columns int) [][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != columns {
			t.Fatalf("%s:%d: %d columns, want %d", name, i+1, len(cells), columns)
		}
		rows = append(rows, cells)
	}
	return rows
}

// table returns the rows for classes and those for single cases, by name.
func table(t testing.TB) (byClass, byID map[string]row) {
	t.Helper()
	byClass, byID = map[string]row{}, map[string]row{}
	for _, c := range tsv(t, "differences.tsv", 7) {
		r := row{c[0], c[1], c[2], c[3], c[4], c[5], c[6]}
		m := byID
		if r.expected == "-" {
			m = byClass
		}
		if _, ok := m[r.what]; ok {
			t.Fatalf("differences.tsv: two rows for %s", r.what)
		}
		if r.why == "" {
			t.Errorf("differences.tsv: %s: no reason", r.what)
		}
		m[r.what] = r
	}
	return byClass, byID
}

// TestClassesAreListed compares the table with the classes that the tests know.
func TestClassesAreListed(t *testing.T) {
	byClass, _ := table(t)
	for name, c := range classes {
		r, ok := byClass[name]
		if !ok {
			t.Errorf("class %s is not in differences.tsv", name)
			continue
		}
		if r.sign != c.sign {
			t.Errorf("class %s: sign %q in differences.tsv, want %q", name, r.sign, c.sign)
		}
		if want := switchName(c.lenient); r.leniency != want {
			t.Errorf("class %s: switch %q in differences.tsv, want %q", name, r.leniency, want)
		}
	}
	for name := range byClass {
		if _, ok := classes[name]; !ok {
			t.Errorf("differences.tsv: %s is no class", name)
		}
	}
}

// switchName returns the name of the first field of l that is set, "-" if none. Another
// is Connect, without which there is nothing to compare.
func switchName(l http1.Lenient) string {
	text := fmt.Sprintf("%+v", l)
	before, _, ok := strings.Cut(text, ":true")
	if !ok {
		return "-"
	}
	return before[strings.LastIndexAny(before, " {")+1:]
}

// TestDifferencesOccur reads every attack with net/http too. Each difference
// must be of a listed class, each class must occur, and where a class has a
// switch that must undo it.
func TestDifferencesOccur(t *testing.T) {
	byClass, _ := table(t)
	c := newControl(t)
	occurred := map[string]bool{}
	waits := []attack{ // for a server that judges at once, or judges a line that has ended
		{name: "early", in: []byte("GET / HTTP/1.1\r\nname: a\rb")},
		{name: "late", in: []byte("GET / HTTP/1.1\r\nname\r\n")},
		{name: "huge-size", in: []byte("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5555555555555555\r\na")},
	}
	for _, a := range append(attacks(t), waits...) {
		theirs := c.read(a.in)
		for _, d := range differ(a.in, drive(a.in, len(a.in), strict), theirs) {
			name := classify(d)
			if name == "" {
				t.Errorf("%s: an unlisted difference (%s): ours %+v, net/http %+v, of\n\t%s", a.name, d.sign, d.ours, theirs, quote(a.in))
				continue
			}
			occurred[name] = true
			if classes[name].lenient == (http1.Lenient{}) {
				continue
			}
			lax := drive(a.in, len(a.in), classes[name].lenient)
			if len(differ(a.in, lax, theirs)) > 0 {
				t.Errorf("%s: with %s ours %+v, net/http %+v, of\n\t%s", a.name, switchName(classes[name].lenient), lax, theirs, quote(a.in))
			}
		}
	}
	for name := range byClass {
		if !occurred[name] {
			t.Errorf("differences.tsv: %s no longer occurs in any attack", name)
		}
	}
}

// TestVectors reads the cases of other projects, whole and byte by byte. Where ours and net/http differ
// a class must say so; where ours and the authors of a case differ, a row.
func TestVectors(t *testing.T) {
	_, byID := table(t)
	c := newControl(t)
	seen := map[string]bool{}
	for _, v := range vectors(t) {
		ours, theirs := drive(v.in, len(v.in), strict), c.read(v.in)
		sameInParts(t, v, ours)
		for _, d := range differ(v.in, ours, theirs) {
			if classify(d) == "" {
				t.Errorf("%s: an unlisted difference (%s): ours %+v, net/http %+v, of\n\t%s", v.ID, d.sign, ours, theirs, quote(v.in))
			}
		}
		if agrees(v.Expect, ours.verdict) {
			continue
		}
		seen[v.ID] = true
		r, ok := byID[v.ID]
		want := row{signTo(theirs, ours), v.ID, v.Expect, theirs.verdict, verdictOf(ours), r.why, r.leniency}
		if !ok {
			t.Errorf("%s: not in differences.tsv: %s of\n\t%s", v.ID, want, quote(v.in))
		} else if r != want {
			t.Errorf("differences.tsv: %s: got\n%s, want\n%s", v.ID, r, want)
		}
	}
	for id := range byID {
		if !seen[id] {
			t.Errorf("differences.tsv: ours and the authors of %s agree now", id)
		}
	}
}

func verdictOf(o outcome) string {
	if o.verdict == reject {
		return fmt.Sprintf("reject %d", o.status)
	}
	return o.verdict
}

func signTo(theirs, ours outcome) string {
	switch a, b := ours.verdict == reject, theirs.verdict == reject; {
	case a && !b:
		return stricter
	case b && !a:
		return laxer
	}
	return other
}

// agrees reports whether a verdict is what the authors of a case expect. Many
// of their parsers read heads alone.
func agrees(expect, verdict string) bool {
	switch expect {
	case "unknown", "either":
		return true
	case accept, incomplete:
		return verdict == expect || verdict == body
	}
	return verdict == expect
}

// TestRefusalsEndIt makes sure that nothing after a refusal is read.
func TestRefusalsEndIt(t *testing.T) {
	after := []byte("GET /after HTTP/1.1\r\nHost: a\r\n\r\n")
	for _, a := range attacks(t) {
		if a.status == 200 {
			continue
		}
		in := bytes.Join([][]byte{a.in, after}, nil)
		for _, r := range drive(in, len(in), strict).requests {
			if r.target == "/after" {
				t.Errorf("%s: the request after it was read", a.name)
			}
		}
	}
}
