package probe

import (
	"context"
	"errors"
	"os"
	"runtime"
)

// Calibrate measures what a hit that counts costs on this machine: this process watches a
// function of its own that does nothing. It takes some hundredths of a second.
func Calibrate(ctx context.Context) (Price, error) {
	t, err := Open(os.Getpid())
	if err != nil {
		return Price{}, err
	}
	defer t.Close()
	pushes := t.pushes([]string{calibrated})
	if len(pushes) != 1 {
		return Price{}, errors.New("calibrating: the function to probe is not in this program")
	}
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
