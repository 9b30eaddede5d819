package watch

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tarehq/tare/internal/task"
)

// TestLooks has the files of a process that stays be read now and then alone, and still sees
// at once when it has gone.
func TestLooks(t *testing.T) {
	if os.Getenv("TARE_TEST_STAY") != "" {
		time.Sleep(time.Minute)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLooks$")
	cmd.Env = append(os.Environ(), "TARE_TEST_STAY=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	pid, looks := cmd.Process.Pid, 0
	f := newFinder(Options{PIDs: []int{pid}})
	f.identify = func(pid int) (task.Identity, error) {
		looks++
		return task.Identify(pid)
	}
	if err := f.check(); err != nil {
		t.Fatal(err)
	}
	find := func() bool {
		found, err := f.find()
		if err != nil {
			t.Fatal(err)
		}
		return len(found) == 1
	}
	find()
	looks = 0
	const times = 20
	for range times {
		if !find() {
			t.Fatal("the process was not found")
		}
	}
	// On a slow machine finding so often may take longer than it is trusted.
	if looks > times/2 {
		t.Errorf("its files were read at %d of %d times, want seldom", looks, times)
	}
	f.latest(pid).seen = time.Now().Add(-trusted)
	if looks = 0; !find() || looks == 0 {
		t.Errorf("after %s its files were read %d times, want once at least", trusted, looks)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if find() || !f.ended() {
		t.Error("the process has ended, and was found")
	}
}
