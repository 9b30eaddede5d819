package calibrate

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// replicas is how many of the control a block has when they are kept: enough to
// draw studies of an arm and its twin from.
const replicas = 4

// fourfold is study null with the control, its twin and as many copies as make
// four.
func fourfold(s *study.Study) *study.Study {
	four := *s
	four.AA = true
	four.Arms = slices.Clone(s.Arms)
	for i := len(s.Arms) + 1; i < replicas; i++ {
		again := s.Arms[0]
		again.Name = fmt.Sprintf("%s-%d", again.Name, i)
		four.Arms = append(four.Arms, again)
	}
	four.Primary.Arm = four.Arms[1].Name // a calibration decides nothing: more arms take no more blocks
	return &four
}

// keepReplicates writes what was asked to be kept of a run of study null.
func (c *Cmd) keepReplicates(run *record.Run, a *verdict.Analysis) error {
	if c.Replicates == "" {
		return nil
	}
	rep, err := replicatesOf(run, a)
	if err != nil {
		return err
	}
	return cli.WriteFile(c.Replicates, rep.Write)
}

// replicatesOf are the figures of the blocks in which all four processes count,
// in order of execution, under the primary workload. Metrics of the generator, and
// those that may be zero, are left out.
func replicatesOf(run *record.Run, a *verdict.Analysis) (*stats.Replicates, error) {
	p := a.Manifest.Study.Primary
	byBlock := map[int][]record.Trial{}
	var order []int
	for _, t := range run.Trials {
		if t.Block < 0 || t.Workload != p.Workload || len(t.Invalid) > 0 {
			continue
		}
		if byBlock[t.Block] == nil {
			order = append(order, t.Block)
		}
		byBlock[t.Block] = append(byBlock[t.Block], t)
	}
	order = slices.DeleteFunc(order, func(b int) bool { return len(byBlock[b]) != replicas })
	w := a.Workload(p.Workload)
	if w == nil || len(order) == 0 {
		return nil, fmt.Errorf("keeping replicates: no block has %d valid trials under workload %s", replicas, p.Workload)
	}
	rep := &stats.Replicates{
		Schema: stats.ReplicatesSchema, Metrics: map[string][][]float64{},
		About: fmt.Sprintf("%s of %d fresh processes of arm %s of study %s under workload %s, seed %d; %s/%s, %s; %s",
			unit.Plural(len(order), "block"), replicas, a.Manifest.Study.Control, a.Manifest.Study.Name, p.Workload, a.Manifest.Seed,
			runtime.GOOS, runtime.GOARCH, unit.Plural(runtime.NumCPU(), "CPU"), run.Manifest.Started.Format(time.DateOnly)),
	}
	for _, m := range w.Metrics {
		if rows := rowsOf(m.Name, order, byBlock); rows != nil && m.Scale == verdict.Ratio && !m.Instrument && m.Withheld == "" {
			rep.Metrics[m.Name] = rows
		}
	}
	return rep, nil
}

// rowsOf are a metric's values; nil where a trial lacks it.
func rowsOf(metric string, order []int, byBlock map[int][]record.Trial) [][]float64 {
	var rows [][]float64
	for _, b := range order {
		var row []float64
		for _, t := range byBlock[b] {
			v, ok := t.Metrics[metric]
			if !ok || v <= 0 {
				return nil
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return rows
}
