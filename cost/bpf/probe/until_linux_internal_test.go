//go:build linux && amd64

package probe

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
)

// TestUntil has a function of this process watched and looked at until a moment
// that has come, as it does for whoever was stopped, and until one that has not.
func TestUntil(t *testing.T) {
	for _, tt := range []struct {
		name string
		most time.Duration
		want uint64
	}{
		{"over", -time.Minute, 0},
		{"under way", time.Minute, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target, err := Open(os.Getpid())
			if errors.Is(err, cost.ErrNotSupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			d, err := newDevice(target, 0)
			if errors.Is(err, cost.ErrNotSupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			pushes, ids := target.pushes([]string{calibrated}), []uint64{0}
			err = errors.Join(d.attach(d.Look, pushes, ids), d.attach(d.Enter, pushes, ids), d.begin(tt.most))
			if err != nil {
				t.Fatal(err)
			}
			around(10)
			looked, err := d.counts(1)
			if err != nil {
				t.Fatal(err)
			}
			entered, err := d.tallied(0)
			if err != nil {
				t.Fatal(err)
			}
			if looked[0] != tt.want || entered.Entered != tt.want {
				t.Errorf("got %d calls looked at and %d timed, want %d", looked[0], entered.Entered, tt.want)
			}
		})
	}
}
