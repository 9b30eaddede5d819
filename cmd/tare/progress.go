package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/stats/unit"
)

// progress shows a run under way on standard error: one line redrawn in place
// on a terminal, a line a step elsewhere.
type progress struct {
	t     *terminal
	last  lab.Event // the trial under way
	look  string    // said when the run goes on; else the report says it
	drawn bool
}

func newProgress(t *terminal) *progress { return &progress{t: t} }

// show takes one event.
func (p *progress) show(e lab.Event) {
	switch e.Stage {
	case lab.Running:
		p.last = e
		if !p.t.live && !p.drawn {
			fmt.Fprintf(p.t.err, "%s planned, about %s\n", count(uint64(e.Trials), "trial"), e.Left.Round(time.Second))
			p.drawn = true
		}
		p.line(p.look)
		p.look = ""
		p.draw(p.status(""))
	case lab.Loading:
		p.draw(p.status(fmt.Sprintf(" · %s · p50 %s", unit.Format(e.Live.Rate, unit.PerSecond),
			unit.Format(float64(e.Live.Response.Quantile(.5)), unit.Nanoseconds))))
	case lab.Ended:
		p.ended(e)
	case lab.Building, lab.Piloting, lab.Profiling:
		if p.t.live {
			p.draw(e.Text)
		} else {
			fmt.Fprintln(p.t.err, e.Text)
		}
	case lab.Looking:
		p.look = e.Text
	}
}

// status is the line of a trial under way, with figures of its load.
func (p *progress) status(figures string) string {
	share := float64(p.last.Trial) / float64(max(1, p.last.Trials))
	const width = 12
	full := int(share * width)
	bar := strings.Repeat("█", full) + strings.Repeat("░", width-full)
	return fmt.Sprintf("%s %3.0f%% · %s left · block %d · %s, %s%s", bar, 100*share, p.last.Left.Round(time.Second),
		p.last.Block, p.last.Arm, p.last.Workload, figures)
}

func (p *progress) ended(e lab.Event) {
	if e.Result == nil {
		p.line(e.Text)
		return
	}
	if len(e.Result.Invalid) > 0 {
		p.line(fmt.Sprintf("block %d: %s, %s: invalid: %s", e.Block, e.Arm, e.Workload, strings.Join(e.Result.Invalid, "; ")))
		return
	}
	if p.t.live {
		return
	}
	text := fmt.Sprintf("block %d: %s, %s: %s", e.Block, e.Arm, e.Workload, unit.Format(e.Result.Metrics["throughput"], unit.PerSecond))
	if cpu, ok := e.Result.Metrics["cpu_per_request"]; ok { // not of a URL
		text += ", CPU per request " + unit.Format(cpu, unit.Nanoseconds)
	}
	p.line(text)
}

// draw redraws the line on a terminal.
func (p *progress) draw(text string) {
	if !p.t.live {
		return
	}
	text = report.Printable(text)
	if r := []rune(text); len(r) >= p.t.columns {
		text = string(r[:p.t.columns-1])
	}
	fmt.Fprintf(p.t.err, "\r\x1b[K\x1b[?7l%s\x1b[?7h", text) // cut, not wrapped, where the window has become narrower
	p.drawn = true
}

// line prints a line that stays.
func (p *progress) line(text string) {
	if text == "" {
		return
	}
	text = report.Printable(text)
	if p.t.live {
		fmt.Fprint(p.t.err, "\r\x1b[K")
	}
	fmt.Fprintln(p.t.err, text)
}

// done clears the line.
func (p *progress) done() {
	if p.t.live && p.drawn {
		fmt.Fprint(p.t.err, "\r\x1b[K")
	}
}
