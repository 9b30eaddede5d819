package sys_test

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/load/internal/sys"
)

// allowed are how many CPUs each thread of this process may run on.
func allowed(t *testing.T) (counts []int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		var set unix.CPUSet
		if unix.SchedGetaffinity(tid, &set) == nil { // else it has ended
			counts = append(counts, set.Count())
		}
	}
	return counts
}

func TestConfine(t *testing.T) {
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil || before.Count() < 2 {
		t.Skipf("SKIPPED: %d CPUs, %v", before.Count(), err)
	}
	last := 0
	for i := range 8 * len(before) * 8 {
		if before.IsSet(i) {
			last = i
		}
	}
	release := sys.Confine([]int{last})
	for _, n := range allowed(t) {
		if n != 1 {
			t.Errorf("confined to one CPU, a thread may run on %d", n)
		}
	}
	release()
	for _, n := range allowed(t) {
		if n != before.Count() {
			t.Errorf("let go, a thread may run on %d CPUs, want %d", n, before.Count())
		}
	}
	sys.Confine(nil)()
}
