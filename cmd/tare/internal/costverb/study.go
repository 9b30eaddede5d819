package costverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
)

// studied is what the captures of one arm under one workload come to.
type studied struct {
	Arm      string `json:"arm"`
	Workload string `json:"workload"`
	*cost.Bill
	b *bill
}

// showStudy shows who spent what in the arms of a run, read anew from the profiles
// that it kept.
func (c *Command) showStudy(ctx context.Context, t *cli.Terminal) error {
	if err := cmp.Or(c.checkStudy(t), cli.CheckOutputs(c.outputs())); err != nil {
		return err
	}
	dir, err := runs.Find(c.Study)
	if err != nil {
		return err
	}
	run, err := record.Open(dir)
	if err != nil {
		return err
	}
	cells, err := runs.FindCells(t, run, c.Arm, c.Workload)
	if err != nil {
		return err
	}
	if len(cells) > 1 && (c.HTML != "" || c.Folded != "" || c.Labelled != "") {
		return cli.Usage("name one with --arm, and --workload if need be", fmt.Errorf("a file holds one arm under one workload; the run has %d", len(cells)))
	}
	var all []studied
	var p doc.Page
	for _, cell := range cells {
		seen, err := cell.Merge(run)
		if err != nil {
			return err
		}
		b := newBill(seen)
		all = append(all, studied{cell.Arm, cell.Workload, b.total, b})
		p.Add(b.blocks(c.All)...)
	}
	unwritten := c.write(all[0].b) // the table is shown all the same
	return t.Show(ctx, cli.Result{JSON: all, Page: p}, c.JSON, unwritten)
}

// checkStudy refuses what goes with looking at a service.
func (c *Command) checkStudy(t *cli.Terminal) error {
	if c.What != "" || c.Named() || len(c.Profile) > 0 || c.Load.URL != "" || c.Rate != 0 || len(c.Header) > 0 || c.Requests != 0 ||
		c.Waits || c.Marks || len(c.Owner) > 0 || c.Hz.Hz != 0 {
		return cli.Usage("tare cost --study RUN", errors.New("--study shows what a run kept: nothing is profiled, watched, loaded or counted beside it"))
	}
	return t.RefuseFlags(true, "beside --study", "for", "connections", "count", "max-overhead")
}
