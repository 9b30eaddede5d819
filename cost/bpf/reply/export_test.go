//go:build linux && amd64

package reply

import (
	"time"

	"github.com/cilium/ebpf"
)

// Toggle has the programs run, or not, while all else stays as it is.
func (w *Watch) Toggle(on bool) error {
	if on {
		return w.attach()
	}
	return w.detach()
}

// Took returns the time that the programs ran, if the kernel is told to count it.
func (w *Watch) Took() (time.Duration, error) {
	var all time.Duration
	for _, p := range []*ebpf.Program{w.objects.Opened, w.objects.Sent, w.objects.Arrive} {
		s, err := p.Stats()
		if err != nil {
			return 0, err
		}
		all += s.Runtime
	}
	return all, nil
}
