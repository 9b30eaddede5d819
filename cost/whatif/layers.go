package whatif

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/bpf/probe"
	"github.com/tarehq/tare/cost/capture"
)

// Layer is what one owner spent more, or less, while another was slowed down.
type Layer struct {
	Kind    string  `json:"kind"`
	Owner   string  `json:"owner"`
	Where   string  `json:"where,omitempty"`
	Package string  `json:"package,omitempty"` // import path; the folder of its file where that is not known
	Off     float64 `json:"off_ns"`            // CPU per request without the probe
	Change  float64 `json:"change_ns"`
	Margin  float64 `json:"change_margin_ns"` // half of the 95 % interval of Change; 0: not sampled
}

// Differs reports whether the change is larger than chance explains.
func (l *Layer) Differs() bool { return math.Abs(l.Change) > l.Margin }

// half is what was sampled in the windows of one kind.
type half struct {
	stacks   []cost.Stack
	requests float64
	duration time.Duration
}

func (h *half) bill() *cost.Bill {
	return cost.NewBill(h.stacks, nil, cost.Window{Duration: h.duration, Requests: h.requests})
}

// sampleLayers samples who spends CPU, for a quarter of the time each: off, on, on,
// off, so that drift hits both.
func (r *run) sampleLayers(ctx context.Context, brake *probe.Brake) (off, on *cost.Bill, err error) {
	var halves [2]half
	for _, kind := range [...]int{0, 1, 1, 0} {
		if err := r.sampleHalf(ctx, brake, &halves[kind], kind == 1); err != nil {
			return nil, nil, fmt.Errorf("sampling who spends the difference: %w", err)
		}
	}
	off, on = halves[0].bill(), halves[1].bill()
	if module, program := capture.Module(r.PID); module != "" {
		off.NamePackages(module, program)
		on.NamePackages(module, program)
	}
	return off, on, nil
}

func (r *run) sampleHalf(ctx context.Context, brake *probe.Brake, h *half, on bool) error {
	s, err := bpf.Start(bpf.Options{PID: r.PID})
	if err != nil {
		return err
	}
	reading, err := r.readWindow(ctx, brake, window{on: on, d: r.Layers / 4, most: r.Layers})
	p, stopErr := s.Stop()
	if err := cmp.Or(err, stopErr); err != nil {
		return err
	}
	h.stacks = append(h.stacks, p.Stacks...)
	// The sampling lasts a little longer than the count.
	h.requests += float64(reading.Requests) * p.Duration.Seconds() / reading.Took.Seconds()
	h.duration += p.Duration
	return nil
}

// compareLayers lists who spent more or less, the largest difference first.
func compareLayers(off, on *cost.Bill) []Layer {
	type id struct{ kind, owner, where string }
	at := map[id]int{}
	var all []Layer
	find := func(it *cost.Item) *Layer {
		key := id{it.Kind, it.Owner, it.Where}
		if it.Kind == cost.Middleware.String() {
			key.kind = cost.Handler.String() // it depends on what was seen inside it
		}
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, Layer{Kind: it.Kind, Owner: it.Owner, Where: it.Where, Package: it.Package})
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
	slices.SortStableFunc(all, func(a, b Layer) int { return cmp.Compare(math.Abs(b.Change), math.Abs(a.Change)) })
	return all
}
