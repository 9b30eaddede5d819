package compat

import (
	"fmt"
	"io"
	"strings"
)

// Row is one probe's outcomes, one for each of Table.Servers.
type Row struct {
	Probe    Probe
	Outcomes []Outcome
}

// Table holds what all probes came to on all servers.
type Table struct {
	Servers []Server
	Rows    []Row
}

// WriteVerdicts writes a Markdown table of the verdicts alone, which is the same
// as long as the verdicts are.
func (t Table) WriteVerdicts(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| middleware or handler | what is asked |")
	for _, s := range t.Servers {
		fmt.Fprintf(&b, " %s |", s.Title)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(t.Servers)) + "\n")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "| %s (`%s`) | %s |", r.Probe.Name, r.Probe.From, r.Probe.Asks)
		for _, o := range r.Outcomes {
			if o.Verdict == Works {
				b.WriteString(" works |")
				continue
			}
			fmt.Fprintf(&b, " **%s** |", o.Verdict)
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteNotes writes a list for each server of what was seen where something did
// not hold.
func (t Table) WriteNotes(w io.Writer) error {
	var b strings.Builder
	for i, s := range t.Servers {
		fmt.Fprintf(&b, "\n### %s\n\n%s.\n", s.Title, s.Setup)
		var notes strings.Builder
		for _, r := range t.Rows {
			o := r.Outcomes[i]
			if o.Verdict == Works {
				continue
			}
			var seen []string
			for _, f := range o.Findings {
				seen = append(seen, strings.ReplaceAll(f.Note, "|", "\\|"))
			}
			fmt.Fprintf(&notes, "- **%s** %s: %s.\n", r.Probe.Name, o.Verdict, strings.Join(seen, "; "))
		}
		if notes.Len() == 0 {
			notes.WriteString("Everything works.\n")
		}
		fmt.Fprintf(&b, "\n%s", &notes)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
