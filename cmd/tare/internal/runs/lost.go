package runs

import (
	"fmt"
	"io"
	"slices"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
)

// explainLost explains, for every arm under a workload that was profiled, why none of
// its captures counts. An empty arm or workload stands for any.
func explainLost(run *record.Run, arm, workload string) []string {
	var lost []string
	for _, w := range run.Manifest.Study.Workloads {
		for _, a := range run.Manifest.Study.Arms {
			if arm != "" && arm != a.Name || workload != "" && workload != w.Name {
				continue
			}
			of := slices.DeleteFunc(slices.Clone(run.Captures), func(c record.Capture) bool { return c.Arm != a.Name || c.Workload != w.Name })
			if len(of) > 0 && !slices.ContainsFunc(of, func(c record.Capture) bool { return len(c.Invalid) == 0 }) {
				lost = append(lost, fmt.Sprintf("%s under %s: no capture counts: %s", a.Name, w.Name, doc.Printable(of[0].Invalid[0])))
			}
		}
	}
	return lost
}

// printLost names them beside the captures that are shown.
func printLost(w io.Writer, lost []string) {
	for _, text := range lost {
		fmt.Fprintf(w, "excluded: %s\n", text)
	}
}

// allLost is the error if there are no other captures; nil if none was lost.
func allLost(run *record.Run, lost []string) error {
	if len(lost) == 0 {
		return nil
	}
	text := lost[0]
	if n := len(lost) - 1; n > 0 {
		text += fmt.Sprintf("; likewise %d more", n)
	}
	return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s has no profile: %s", run.Dir, text), Hint: "`tare report " + run.Dir + "` lists what was lost"}
}
