package runs

import (
	"fmt"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/captured"
	"github.com/tarehq/tare/lab/record"
)

// FindCells returns the cells of a run that were profiled, in the study's order. An empty
// arm or workload stands for any. It prints which captures were lost.
func FindCells(t *cli.Terminal, run *record.Run, arm, workload string) ([]captured.Cell, error) {
	all := captured.Cells(run)
	var found []captured.Cell
	var names []string
	for _, c := range all {
		names = append(names, c.String())
		if (arm == "" || arm == c.Arm) && (workload == "" || workload == c.Workload) {
			found = append(found, c)
		}
	}
	lost := explainLost(run, arm, workload)
	if len(found) > 0 {
		printLost(t.Err, lost)
		return found, nil
	}
	if err := allLost(run, lost); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("%s holds no profiles", run.Dir),
			Hint: "profiles are kept of studies that say `attribute`, such as nesting: see `tare help study-files`"}
	}
	return nil, cli.Usage("there are "+strings.Join(names, ", "), fmt.Errorf("%s holds no profile of that arm under that workload", run.Dir))
}
