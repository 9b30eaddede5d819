package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/stats/unit"
)

// marks are what to watch by the clock, and what it may cost.
type marks struct {
	PID    int
	Owners []string // names; none means all that handle requests
	// Sampled is a profile of the process: those whose it is handle requests, too.
	Sampled []cost.Stack
	For     time.Duration
	// Most is the largest part of the process's CPU time that watching may take,
	// 0 to 1.
	Most float64
}

// watch watches every call of the owners. It says what that will cost before it
// begins, and does not begin if it is too much.
func (m marks) watch(ctx context.Context, t *cli.Terminal) (*probe.Measurement, error) {
	target, err := probe.Open(m.PID)
	if err != nil {
		return nil, unprobed(err)
	}
	defer target.Close()
	target.Sampled(m.Sampled)
	price, err := probe.Calibrate(ctx)
	if err != nil {
		return nil, unprobed(err)
	}
	owners, err := target.Owners(ctx, m.Owners, probe.Glance)
	if err != nil {
		return nil, unprobed(err)
	}
	w, err := target.NewWatch(owners, price)
	if err != nil {
		return nil, unprobed(err)
	}
	defer w.Close()
	f, err := w.Look(ctx, probe.Glance)
	if err != nil {
		return nil, unprobed(err)
	}
	share := 1.0
	if f.Share > m.Most {
		share = m.Most / f.Share
	}
	t.Note("a hit costs %s here: %s hits a second are %s of the process's CPU while %d owners are watched",
		unit.Format(float64(price.Hit), unit.Nanoseconds), unit.Number(math.Round(f.Hits)), unit.Format(f.Share, unit.Share), len(f.Calls))
	if share < probe.LeastShare {
		return nil, m.refuse(f)
	}
	if share < 1 {
		t.Note("so they are watched for %s of the time", unit.Format(share, unit.Share))
	}
	res, err := w.Run(ctx, probe.Options{For: m.For, Share: share, Window: max(200*time.Millisecond, min(time.Second, time.Duration(share*float64(m.For))))})
	if err != nil {
		return nil, unprobed(err)
	}
	if took := res.Share(price) * share; took > m.Most {
		res.Warnings = append(res.Warnings, fmt.Errorf("watching took %s of the process's CPU time: there were more calls than while it was looked at", unit.Format(took, unit.Share)))
	}
	for _, o := range probe.Uncalled(owners, res.Walls) {
		res.Warnings = append(res.Warnings, target.ErrUncalled(ctx, o, res.Requests))
	}
	return res, nil
}

// refuse says how much would fit.
func (m marks) refuse(f *probe.Forecast) error {
	fits := int(float64(len(f.Calls)) * m.Most / probe.LeastShare / f.Share)
	hint := fmt.Sprintf("--max-overhead %.0f%% would do", math.Ceil(100*f.Share*probe.LeastShare))
	if fits > 0 {
		hint = fmt.Sprintf("name at most %d of the %d owners, --owner NAME; or %s", fits, len(f.Calls), hint)
	}
	return &cli.Failure{Status: cli.ExitFailed, Hint: hint,
		Err: fmt.Errorf("watching %d owners for a tenth of the time would take %s of the process's CPU, more than %s",
			len(f.Calls), unit.Format(f.Share*probe.LeastShare, unit.Share), unit.Format(m.Most, unit.Share))}
}

// addMarks adds what was seen to a bill.
func addMarks(b *cost.Bill, m *probe.Measurement) {
	w := cost.Window{Duration: m.Attached, Requests: m.Requests}
	if w.Requests == 0 {
		// Where requests begin is not known in this program: as many as otherwise.
		w = cost.Window{Duration: time.Duration(b.Seconds * float64(time.Second)), Requests: b.Requests}.Over(m.Attached)
		if b.Requests > 0 && !m.SeesRequests() {
			b.Warnings = append(b.Warnings, "where requests begin is not known in this program: calls a request are told by the requests a second of the time before, and these may have changed since")
		}
	}
	b.AddWalls(m.Walls, w)
	b.Warnings = append(b.Warnings, cli.Texts(m.Warnings)...)
}

// wallText says what the clock saw of an owner's calls: how many, what one takes
// by itself, and with the owners inside it.
func wallText(it *cost.Item, per string) string {
	w := it.Wall
	return fmt.Sprintf("clock: %s a %s, p50 %s, p99 %s, mean %s, total %s",
		unit.Number(w.Calls), per, callTime(w.P50), callTime(w.P99), callTime(w.Self), callTime(w.Total))
}

// leastCall is the shortest time of a call that is told, in nanoseconds: a tenth of
// what a hit costs, which was taken off it.
const leastCall = 100

func callTime(ns float64) string {
	if ns < leastCall {
		return "below " + unit.Format(leastCall, unit.Nanoseconds)
	}
	return unit.Format(ns, unit.Nanoseconds)
}

// unprobed explains why a process cannot be probed.
func unprobed(err error) error {
	var f *cli.Failure
	switch {
	case errors.As(err, &f), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, os.ErrNotExist):
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "is the process still running?"}
	case errors.Is(err, cost.ErrNotSupported):
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "tare cost URL needs neither root nor probes, only net/http/pprof in the service"}
	}
	return err
}
