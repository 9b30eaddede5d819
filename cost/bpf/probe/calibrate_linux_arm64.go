package probe

import (
	"context"
	"errors"
	"runtime"
)

// Calibrate measures what a hit that counts costs on this machine: this process watches a
// function of its own that does nothing. It takes some hundredths of a second.
func Calibrate(ctx context.Context) (Price, error) {
	t, pushes, err := openSelf()
	if err != nil {
		return Price{}, err
	}
	defer t.Close()
	d, err := newCountingDevice(t)
	if err != nil {
		return Price{}, err
	}
	defer d.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	plain := quickest()
	if err := errors.Join(d.attach(d.Count, pushes, []uint64{0}), ctx.Err()); err != nil {
		return Price{}, err
	}
	return Price{Count: inService(quickest() - plain)}, d.detach()
}
