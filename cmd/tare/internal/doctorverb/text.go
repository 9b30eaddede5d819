package doctorverb

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/stats/unit"
)

// printDiagnoses shows one after the other.
func printDiagnoses(t *cli.Terminal, all []*doctor.Diagnosis) error {
	w := bufio.NewWriter(t.Out)
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printDiagnosis(w, d, t.Width)
	}
	return w.Flush()
}

// printDiagnosis shows the findings by price, then what is healthy and what was
// not looked at.
func printDiagnosis(w io.Writer, d *doctor.Diagnosis, width int) {
	fmt.Fprintf(w, "diagnosis of %s", doc.Printable(d.Subject))
	if d.Seconds > 0 {
		fmt.Fprintf(w, " over %.0f s", d.Seconds)
	}
	if d.Requests > 0 {
		fmt.Fprintf(w, ", %s requests", unit.Number(float64(int(d.Requests))))
	}
	fmt.Fprintf(w, "\n%s\n", tally(d))
	for i := range d.Findings {
		printFinding(w, i+1, &d.Findings[i], width)
	}
	if len(d.Uncertain) > 0 {
		cli.Wrap(w, "not certain    ", priced(d.Uncertain, true)+": more than the threshold, but not by more than chance: a longer --for narrows it", width)
	}
	if len(d.Cheap) > 0 {
		cli.Wrap(w, "seen, cheap    ", priced(d.Cheap, false), width)
	}
	if len(d.Healthy) > 0 {
		cli.Wrap(w, "healthy        ", strings.Join(d.Healthy, ", "), width)
	}
	for _, line := range blind(d.Blind) {
		cli.Wrap(w, "not looked at  ", line, width)
	}
	for _, warning := range d.Warnings {
		cli.Wrap(w, "warning        ", warning, width)
	}
}

// priced names what is there, with its price, and with its threshold if that is
// asked for.
func priced(all []doctor.Finding, threshold bool) string {
	var texts []string
	for _, f := range all {
		text := f.Rule
		switch p := f.Price; {
		case p == nil:
		case p.Share > 0:
			text += " " + unit.Format(p.Share, unit.Share) + " of " + p.Whole()
		default:
			text += " " + unit.Format(p.Value, p.Unit) + " " + p.Of
		}
		if threshold {
			text += " (fires at " + f.Threshold + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// blind names what was not looked at, once for each reason.
func blind(all []doctor.Blind) []string {
	type group struct{ rules, needs []string }
	groups := map[string]*group{}
	var order []string
	for _, b := range all {
		why := b.Reason
		if why == "" {
			why = "nobody gathered it"
		}
		g := groups[why]
		if g == nil {
			g = &group{}
			groups[why] = g
			order = append(order, why)
		}
		g.rules = append(g.rules, b.Rule)
		if need := string(b.Needs); !slices.Contains(g.needs, need) {
			g.needs = append(g.needs, need)
		}
	}
	var lines []string
	for _, why := range order {
		g := groups[why]
		lines = append(lines, strings.Join(g.rules, ", ")+": needs "+strings.Join(g.needs, ", ")+": "+why)
	}
	return lines
}

// tally counts the findings, and the rules that could not tell: where those are
// many, no finding means little.
func tally(d *doctor.Diagnosis) string {
	text := "nothing was found"
	switch n := len(d.Findings); {
	case d.Inconclusive():
		text = "inconclusive: no findings, but that does not show health here"
	case perhaps(d):
		text = "inconclusive: nothing was found for certain"
	case n == 1:
		text = "one finding"
	case n > 1:
		text = fmt.Sprintf("%d findings, by price", n)
	}
	if n := len(d.Blind); n > 0 {
		text += fmt.Sprintf("; %d of %d rules could not decide", n, len(doctor.Rules()))
	}
	return text + "\n"
}

// perhaps reports whether all that was found may be chance.
func perhaps(d *doctor.Diagnosis) bool { return len(d.Findings) == 0 && len(d.Uncertain) > 0 }

func printFinding(w io.Writer, n int, f *doctor.Finding, width int) {
	cli.Wrap(w, fmt.Sprintf("%2d. ", n), fmt.Sprintf("%s, %s: %s", f.Rule, f.Severity, f.Title), width)
	const label = "    %-10s "
	if f.Price != nil {
		cli.Wrap(w, fmt.Sprintf(label, "price"), f.Price.String(), width)
	}
	for i, row := range f.Evidence {
		name := ""
		if i == 0 {
			name = "evidence"
		}
		cli.Wrap(w, fmt.Sprintf(label, name), row.String(), width)
	}
	cli.Wrap(w, fmt.Sprintf(label, "threshold"), f.Threshold, width)
	cli.Wrap(w, fmt.Sprintf(label, "remedy"), f.Remedy, width)
	cli.Wrap(w, fmt.Sprintf(label, "verify"), f.Verify, width)
	fmt.Fprintln(w)
}
