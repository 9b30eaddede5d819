package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/stats/unit"
)

// layer is what one owner spent more, or less, while another was slowed down.
type layer struct {
	Kind   string  `json:"kind"`
	Owner  string  `json:"owner"`
	Where  string  `json:"where,omitempty"`
	Off    float64 `json:"off_ns"` // CPU a request, as it is
	Change float64 `json:"change_ns"`
	Margin float64 `json:"change_margin_ns"` // half of the 95 % interval of Change
}

// sampledHalf is what was sampled in the windows of one kind.
type sampledHalf struct {
	stacks   []cost.Stack
	requests float64
	duration time.Duration
}

func (h *sampledHalf) bill() *cost.Bill {
	return cost.NewBill(h.stacks, nil, cost.Window{Duration: h.duration, Requests: h.requests})
}

// layers samples who spends CPU, with and without the slow-down, for a quarter of
// the time each: without, with, with, without, so that what drifts drifts in both.
func (c *whatifCmd) layers(ctx context.Context, brake *probe.Brake) (off, on *cost.Bill, err error) {
	var halves [2]sampledHalf
	for _, kind := range [...]int{0, 1, 1, 0} {
		h := &halves[kind]
		if err := c.sampleHalf(ctx, brake, h, kind == 1); err != nil {
			return nil, nil, fmt.Errorf("sampling who spends the difference: %w", err)
		}
	}
	return halves[0].bill(), halves[1].bill(), nil
}

func (c *whatifCmd) sampleHalf(ctx context.Context, brake *probe.Brake, h *sampledHalf, on bool) error {
	s, err := bpf.Start(bpf.Options{PID: c.PID})
	if err != nil {
		return err
	}
	r, err := c.one(ctx, brake, window{on: on, d: c.Layers / 4, most: c.Layers})
	p, stopErr := s.Stop()
	if err := cmp.Or(err, stopErr); err != nil {
		return err
	}
	h.stacks = append(h.stacks, p.Stacks...)
	// The sampling lasts a little longer than what is counted.
	h.requests += float64(r.Requests) * p.Duration.Seconds() / r.Took.Seconds()
	h.duration += p.Duration
	return nil
}

// compareLayers says who spent more or less, the largest difference first.
func compareLayers(off, on *cost.Bill) []layer {
	type id struct{ kind, owner, where string }
	at := map[id]int{}
	var all []layer
	find := func(it *cost.Item) *layer {
		key := id{it.Kind, it.Owner, it.Where}
		if it.Kind == cost.Middleware.String() {
			key.kind = cost.Handler.String() // it depends on what was seen inside it
		}
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, layer{Kind: it.Kind, Owner: it.Owner, Where: it.Where})
		}
		return &all[i]
	}
	for i := range off.Items {
		l := find(&off.Items[i])
		l.Off = off.Items[i].Self
		l.Change -= off.Items[i].Self
		l.Margin = off.Items[i].Margin
	}
	for i := range on.Items {
		l := find(&on.Items[i])
		l.Change += on.Items[i].Self
		l.Margin = math.Hypot(l.Margin, on.Items[i].Margin)
	}
	slices.SortStableFunc(all, func(a, b layer) int { return cmp.Compare(math.Abs(b.Change), math.Abs(a.Change)) })
	return all
}

// printLayers shows the owners that spent more or less than chance explains.
func printLayers(out io.Writer, all []layer) {
	ns := func(v float64) string { return unit.Format(v, unit.Nanoseconds) }
	fmt.Fprintf(out, "\nWhere the difference lies, CPU a request, by sampling:\n")
	const most = 8
	shown := 0
	for _, l := range all {
		if shown == most || math.Abs(l.Change) <= l.Margin {
			continue
		}
		shown++
		margin := "–" // what was not sampled has none
		if l.Margin > 0 {
			margin = ns(l.Margin)
		}
		fmt.Fprintf(out, "  %10s ± %-9s %s\n", unit.Signed(l.Change, unit.Nanoseconds), margin, report.Printable(l.Owner))
	}
	if shown == 0 {
		fmt.Fprintf(out, "  in nobody by more than chance explains: sample longer, by --layers\n")
	}
}
