package watch

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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
		if !find() || f.ended() {
			t.Fatal("the process was not found, or has ended")
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

// TestExec has a process that begins another program missed at one look, so that the sampler
// lets go of what it was, and found as what it is at the next.
func TestExec(t *testing.T) {
	if to := os.Getenv("TARE_TEST_EXEC"); to != "" {
		io.Copy(io.Discard, os.Stdin)
		t.Fatal(syscall.Exec(to, []string{to, "-test.run=^TestLooks$"}, append(os.Environ(), "TARE_TEST_STAY=1")))
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "an\nother\xff\x1b[1m") // whoever starts a program names its file
	if err := os.WriteFile(other, self, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestExec$")
	cmd.Env = append(os.Environ(), "TARE_TEST_EXEC="+other)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	f := newFinder(Options{PIDs: []int{pid}})
	if err := f.check(); err != nil {
		t.Fatal(err)
	}
	find := func() int {
		found, err := f.find()
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := find(); n != 1 {
		t.Fatalf("%d processes found, want 1", n)
	}
	before := f.latest(pid)
	in.Close()
	for deadline := time.Now().Add(time.Minute); find() == 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("that it runs another program was not noticed")
		}
	}
	if !before.gone || f.ended() {
		t.Error("want what it was gone, and the process not ended")
	}
	if n := find(); n != 1 || f.latest(pid).Service != "an\ufffdother\ufffd\ufffd[1m" || f.latest(pid).id == before.id {
		t.Errorf("%d processes found, %+v, want what it runs now", n, f.latest(pid))
	}
}
