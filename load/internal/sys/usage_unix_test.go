//go:build unix

package sys_test

import (
	"testing"

	"github.com/tarehq/tare/load/internal/sys"
)

func TestUsage(t *testing.T) {
	before := sys.CPUTime()
	for sys.CPUTime() == before { // work until the clock moves on
	}
	if after := sys.CPUTime(); after < before {
		t.Errorf("got %v of CPU time after %v", after, before)
	}
	if rss := sys.MaxRSS(); rss < 1<<20 || rss > 1<<40 {
		t.Errorf("got a largest resident set of %d bytes", rss)
	}
	if sys.DescriptorLimit() == 0 {
		t.Error("got a limit of no descriptors")
	}
}
