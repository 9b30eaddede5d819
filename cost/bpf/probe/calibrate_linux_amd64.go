package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tarehq/tare/cost/internal/loglinear"
)

// Calibrate measures what a hit costs on this machine: this process watches a
// function of its own that does nothing. It takes about 0.1 s.
func Calibrate(ctx context.Context) (Price, error) {
	t, pushes, err := openSelf()
	if err != nil {
		return Price{}, err
	}
	defer t.Close()
	w, err := t.NewWatch([]Watched{{Symbols: []string{calibrated}, pushes: pushes}}, Price{})
	if err != nil {
		return Price{}, err
	}
	defer w.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	plain := quickest()
	if err := errors.Join(w.d.allow(time.Minute), w.d.attach(w.d.Look, pushes, []uint64{0})); err != nil {
		return Price{}, err
	}
	around(32)
	if err := errors.Join(w.d.detach(), w.learn(), ctx.Err()); err != nil {
		return Price{}, err
	}
	price, err := w.hit(plain)
	if err != nil {
		return Price{}, err
	}
	if err := w.d.attach(w.d.Count, pushes, []uint64{0}); err != nil {
		return Price{}, err
	}
	price.Count = inService(quickest() - plain)
	return price, w.d.detach()
}

// hit measures calls while they are watched.
func (w *Watch) hit(plain time.Duration) (Price, error) {
	p := newPlan(w.routes, w.t)
	if len(p.marks) == 0 {
		return Price{}, fmt.Errorf("calibrating: %s", cmp.Or(p.blurred[0].why, "no call was seen"))
	}
	if err := errors.Join(w.attach(p), w.d.begin(time.Minute)); err != nil {
		return Price{}, err
	}
	watched := quickest()
	if err := w.d.detach(); err != nil {
		return Price{}, err
	}
	t, err := w.d.tallied(0)
	if err != nil {
		return Price{}, err
	}
	if t.Finished == 0 {
		return Price{}, errors.New("calibrating: no call was seen to end")
	}
	// Two hits a call; of its time, what the probes saw is the inner sides of both.
	return Price{
		Hit:  inService(watched-plain) / 2,
		Trap: time.Duration(loglinear.Quantile(t.Hist[:], 0.5) / 2),
	}, nil
}
