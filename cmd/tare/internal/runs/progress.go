package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/env"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats/unit"
)

// Progress shows a run under way on standard error: one line redrawn in place
// on a terminal, a line a step elsewhere.
type Progress struct {
	*cli.Progress
	last lab.Event // the trial under way
	look string    // said when the run goes on; else the report says it
}

func NewProgress(t *cli.Terminal) *Progress {
	return &Progress{Progress: cli.NewProgress(t)}
}

// Show takes one event.
func (p *Progress) Show(e lab.Event) {
	switch e.Stage {
	case lab.Running:
		p.last = e
		if !p.Terminal.Live && !p.Drawn {
			fmt.Fprintf(p.Terminal.Err, "%s planned, about %s\n", unit.Plural(e.Trials, "trial"), e.Left.Round(time.Second))
			p.Drawn = true
		}
		p.Line(p.look)
		p.look = ""
		p.Draw(p.status(""))
	case lab.Loading:
		figures := " · " + unit.Format(e.Live.Rate, unit.PerSecond)
		if half := e.Live.Response.Quantile(.5); half > 0 { // 0 before the first answer
			figures += " · p50 " + unit.Format(float64(half), unit.Nanoseconds)
		}
		p.Draw(p.status(figures))
	case lab.Ended:
		p.ended(e)
	case lab.Building, lab.Piloting, lab.Profiling:
		p.Begin(e.Text)
	case lab.Looking:
		p.look = e.Text
	}
}

// Begin shows what has begun.
func (p *Progress) Begin(text string) {
	if p.Terminal.Live {
		p.Draw(text)
	} else {
		fmt.Fprintln(p.Terminal.Err, text)
	}
}

// WarnBusy says before anything is built that others use this machine, and what to do.
func (p *Progress) WarnBusy(facts []record.Fact) {
	for _, f := range facts {
		if f.Verdict == string(env.Disturbs) && slices.Contains([]string{"steal", "cpu in use", "busy processes"}, f.Name) {
			p.Done()
			p.Terminal.Note("warning: this machine is busy: %s: %s; %s", f.Name, f.Value, f.Remedy)
		}
	}
}

// status is the line of a trial under way, with figures of its load.
func (p *Progress) status(figures string) string {
	share := float64(p.last.Trial) / float64(max(1, p.last.Trials))
	const width = 12
	full := int(share * width)
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	return fmt.Sprintf("%s %3.0f%% · %s left · block %d · %s, %s%s", bar, 100*share, p.last.Left.Round(time.Second),
		p.last.Block, p.last.Arm, p.last.Workload, figures)
}

func (p *Progress) ended(e lab.Event) {
	if e.Result == nil {
		p.Line(e.Text)
		return
	}
	if e.Result.Twin {
		e.Arm += " again" // as in tables
	}
	if len(e.Result.Invalid) > 0 {
		p.Line(fmt.Sprintf("block %d: %s, %s: invalid: %s", e.Block, e.Arm, e.Workload, strings.Join(e.Result.Invalid, "; ")))
		return
	}
	if p.Terminal.Live {
		return
	}
	text := fmt.Sprintf("block %d: %s, %s: %s", e.Block, e.Arm, e.Workload, unit.Format(e.Result.Metrics["throughput"], unit.PerSecond))
	if cpu, ok := e.Result.Metrics["cpu_per_request"]; ok { // not of a URL
		text += ", CPU per request " + unit.Format(cpu, unit.Nanoseconds)
	}
	p.Line(text)
}
