package watch

import (
	"context"
	"os"
	"testing"
	"time"
)

// TestInterrupted prepares to count no process once it is interrupted: to read large programs,
// one after the other, takes longer than anyone waits.
func TestInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	c := &counters{of: map[*instance]*counter{}}
	defer c.close()
	c.begin(ctx, []*instance{{pid: os.Getpid()}}, time.Second)
	if len(c.of) != 0 {
		t.Errorf("got %d processes to count, want none", len(c.of))
	}
}
