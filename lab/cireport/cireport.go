// Package cireport writes a gate as files that CI systems read: JUnit, SARIF, a badge.
package cireport

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/tarehq/tare/lab/comment"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// Badge writes the worst of the gates for the endpoint badge of shields.io.
//
// Source: shields.io/badges/endpoint-badge, schema version 1.
func Badge(w io.Writer, s comment.Source) error {
	badge := struct {
		SchemaVersion int    `json:"schemaVersion"`
		Label         string `json:"label"`
		Message       string `json:"message"`
		Color         string `json:"color"`
	}{1, s.Analysis.Manifest.Study.Name, "passed", "brightgreen"}
	for _, g := range s.Gates {
		switch {
		case g.Result == bound.Failed:
			badge.Message, badge.Color = fmt.Sprintf("%s %s", g.Metric.Title, g.Figure()), "red"
		case g.Result == bound.Inconclusive && badge.Color == "brightgreen":
			badge.Message, badge.Color = "inconclusive", "yellow"
		}
	}
	return writeJSON(w, badge)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

type testSuites struct {
	XMLName  xml.Name  `xml:"testsuites"`
	Name     string    `xml:"name,attr"`
	Tests    int       `xml:"tests,attr"`
	Failures int       `xml:"failures,attr"`
	Skipped  int       `xml:"skipped,attr"`
	Suite    testSuite `xml:"testsuite"`
}

type testSuite struct {
	Name      string     `xml:"name,attr"`
	Tests     int        `xml:"tests,attr"`
	Failures  int        `xml:"failures,attr"`
	Errors    int        `xml:"errors,attr"`
	Skipped   int        `xml:"skipped,attr"`
	Time      string     `xml:"time,attr"` // s
	Timestamp string     `xml:"timestamp,attr,omitempty"`
	Cases     []testCase `xml:"testcase"`
}

type testCase struct {
	Name      string  `xml:"name,attr"`
	Class     string  `xml:"classname,attr"`
	Time      string  `xml:"time,attr"`
	Failure   *reason `xml:"failure"`
	Skipped   *reason `xml:"skipped"`
	SystemOut string  `xml:"system-out,omitempty"`
}

type reason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes each budget as a test case. One that is inconclusive is skipped, with the
// reason.
//
// Source: the form that GitLab and Jenkins read, github.com/testmoapp/junitxml.
func JUnit(w io.Writer, s comment.Source) error {
	m := &s.Analysis.Manifest
	suite := testSuite{Name: m.Study.Name, Tests: len(s.Gates), Time: fmt.Sprintf("%.3f", m.Took().Seconds())}
	if !m.Started.IsZero() {
		suite.Timestamp = m.Started.UTC().Format("2006-01-02T15:04:05")
	}
	for i := range s.Gates {
		g := &s.Gates[i]
		c := testCase{Name: subject(g), Class: "tare." + m.Study.Name, Time: "0"}
		if g.Workload != "" {
			c.Class += "." + g.Workload
		}
		switch text := finding(g); g.Result {
		case bound.Failed:
			suite.Failures++
			c.Failure = &reason{Message: text, Type: "budget", Text: strings.Join(blame(&s, g.Arm), "\n")}
		case bound.Inconclusive:
			suite.Skipped++
			c.Skipped = &reason{Message: "inconclusive: " + text}
		default:
			c.SystemOut = text
		}
		suite.Cases = append(suite.Cases, c)
	}
	all := testSuites{Name: "tare", Tests: suite.Tests, Failures: suite.Failures, Skipped: suite.Skipped, Suite: suite}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func subject(g *verdict.Gated) string {
	if g.Arm == "" {
		return g.Metric.Title
	}
	return g.Metric.Title + " of " + g.Arm
}

// finding is what became of a budget.
func finding(g *verdict.Gated) string {
	if g.Withheld != "" {
		return g.Withheld
	}
	text := fmt.Sprintf("%s (%s %s), budget %s, %s", g.Figure(), g.Difference.Called(), g.Range(), unit.Change(g.Budget), unit.Plural(g.N, "block"))
	if g.Again != "" {
		text += fmt.Sprintf("; the second run: %s", g.Again)
	}
	return text
}

// blame are the owners of an arm that became dearer, a line each.
func blame(s *comment.Source, arm string) []string {
	var lines []string
	for _, d := range dearer(s) {
		if d.Arm == arm {
			lines = append(lines, d.text())
		}
	}
	return lines
}

// dear is an owner that costs more than in the control.
type dear struct {
	*comment.Change
	comment.Owner
}

// dearer are the owners that cost more, CPU before memory, the largest difference first.
func dearer(s *comment.Source) []dear {
	var all []dear
	for _, base := range []string{unit.Nanoseconds, unit.Bytes} {
		for i := range s.Changes {
			for _, o := range s.Changes[i].Owners(base) {
				if o.Diff > 0 {
					all = append(all, dear{&s.Changes[i], o})
				}
			}
		}
	}
	return all
}

func (d *dear) text() string {
	what := "CPU"
	if d.Base == unit.Bytes {
		what = "allocated"
	}
	text := fmt.Sprintf("%s of %s: %s %s a request (95 %% interval %s to %s)", d.Row.Owner, d.Arm,
		unit.Signed(d.Diff, d.Base), what, unit.Signed(d.Lo, d.Base), unit.Signed(d.Hi, d.Base))
	var names []string
	for _, f := range d.Responsible() {
		names = append(names, f.Function+" "+unit.Signed(f.Diff, d.Base))
	}
	if len(names) > 0 {
		text += "; in " + strings.Join(names, ", ")
	}
	return text
}
