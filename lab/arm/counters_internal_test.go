//go:build linux

package arm

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The time that this process runs, which the kernel counts without any hardware,
// is counted in all of its threads.
func TestEventCounts(t *testing.T) {
	fds, err := openEvent(os.Getpid(), event{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK})
	if errors.Is(err, ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(fds)
	before, err := total(fds)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // on whatever thread
		defer close(ended)
		for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
		}
	}()
	<-ended
	after, err := total(fds)
	if err != nil || after-before <= 0 {
		t.Errorf("counted %v ns of 20 ms of work, %v, want some", after-before, err)
	}
}

func TestOpenCounters(t *testing.T) {
	c, err := OpenCounters(os.Getpid())
	if errors.Is(err, ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sum := 0
	for i, v := range make([]int, 1<<20) {
		sum += i ^ v
	}
	if hits, err := c.Hits(); err != nil || hits <= 0 || hits > 1 {
		t.Errorf("hits: got %v, %v, want a share (of the work for %d)", hits, err, sum)
	}
}

func TestRefusal(t *testing.T) {
	tests := []struct {
		err       error
		want      string
		supported bool
	}{
		{unix.ENOENT, "offers none", false},
		{unix.EOPNOTSUPP, "offers none", false},
		{unix.EACCES, "kernel.perf_event_paranoid is", false},
		{unix.EMFILE, "too many open files", true},
	}
	for _, c := range tests {
		got := refusal(c.err)
		if !strings.Contains(got.Error(), c.want) || errors.Is(got, ErrNotSupported) == c.supported {
			t.Errorf("refusal(%v): got %v, want %q in it, supported %t", c.err, got, c.want, c.supported)
		}
	}
	if _, err := OpenCounters(1 << 30); err == nil {
		t.Error("counters of no process: got no error")
	}
}
