package sys_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/tarehq/tare/load/internal/sys"
)

// TestReserveDescriptors asks for room, and for more than can be had, after which
// what can be had is there and no descriptor is left open.
func TestReserveDescriptors(t *testing.T) {
	limit := int(min(sys.DescriptorLimit(), 1<<20))
	open := descriptors(t)
	for _, n := range []int{0, limit / 2, limit} {
		sys.ReserveDescriptors(n)
		if got, want := tableSize(t), min(n, limit-64); got < want {
			t.Errorf("ReserveDescriptors(%d) with a limit of %d: the table has room for %d, want at least %d", n, limit, got, want)
		}
	}
	if now := descriptors(t); now != open {
		t.Errorf("%d descriptors are open, %d were before", now, open)
	}
}

func tableSize(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("\nFDSize:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil {
		t.Fatalf("FDSize: %v", err)
	}
	return n
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
