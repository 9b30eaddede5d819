package task_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/internal/task"
)

// A process keeps its identity, and another program in its place has another.
func TestIdentify(t *testing.T) {
	self, err := task.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := task.Identify(os.Getpid()); err != nil || again != self {
		t.Errorf("looked at again: %+v, %v, want %+v", again, err, self)
	}
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Skip("there is no cat: ", err)
	}
	other, err := task.Identify(cat.Process.Pid)
	if err != nil || other == self {
		t.Errorf("another process: %+v, %v, want another identity than %+v", other, err, self)
	}
	if _, err := task.CPU(cat.Process.Pid); err != nil {
		t.Errorf("its CPU time: %v", err)
	}
	if !self.Runs(os.Getpid()) || !other.Runs(cat.Process.Pid) || self.Runs(cat.Process.Pid) {
		t.Error("want each to run its own program and not the other's")
	}
	in.Close()
	cat.Wait()
	if _, err := task.Identify(cat.Process.Pid); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("once it has ended: %v, want that its file does not exist", err)
	}
	if other.Runs(cat.Process.Pid) {
		t.Error("once it has ended it runs")
	}
	if _, err := task.CPU(cat.Process.Pid); !errors.Is(err, task.ErrEnded) {
		t.Errorf("its CPU time once it has ended: %v, want ErrEnded", err)
	}
}

func TestReadMaps(t *testing.T) {
	const list = `7f00-8000 r-xp 00001000 08:01 7   /usr/lib/with space.so
0400-0500 r-xp 00000000 08:01 8   /bin/x
0500-0600 r--p 00001000 08:01 8   /bin/x
`
	got, err := task.ReadMaps(strings.NewReader(list))
	want := []task.Mapping{{0x400, 0x500, 0, "/bin/x"}, {0x7f00, 0x8000, 0x1000, "/usr/lib/with space.so"}}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	at := func(start, offset uint64) (uint64, bool) { return start - offset, true }
	if bias, ok := task.Bias(got, "/bin/x", at); !ok || bias != 0x400 {
		t.Errorf("bias %#x, %t, want 0x400", bias, ok)
	}
	if _, ok := task.Bias(got, "/bin/y", at); ok {
		t.Error("a file that is not mapped has a bias")
	}
}

// A process that sleeps for moments wakes its system monitor, which takes a part of
// the CPU time that is counted.
func TestSystemMonitor(t *testing.T) {
	read := func() (all, monitor time.Duration) {
		all, err := task.CPU(os.Getpid())
		if err == nil {
			monitor, err = task.SystemMonitor(os.Getpid())
		}
		if err != nil {
			t.Fatal(err)
		}
		return all, monitor
	}
	all, monitor := read()
	for range 3000 {
		time.Sleep(100 * time.Microsecond)
	}
	allThen, monitorThen := read()
	if took := monitorThen - monitor; took <= 0 || took >= allThen-all {
		t.Errorf("the system monitor took %v of %v", took, allThen-all)
	}
	if _, err := task.SystemMonitor(1 << 30); err == nil {
		t.Error("a process that is not there has a system monitor")
	}
	m := task.Monitor{PID: os.Getpid()}
	for range 3 { // looked for once, and known from then on
		before, err := task.SystemMonitor(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		known, err := m.CPU()
		if err != nil {
			t.Fatal(err)
		}
		if after, err := task.SystemMonitor(os.Getpid()); err != nil || known < before || known > after {
			t.Errorf("got %v of a known thread, and %v before and %v after of one that is looked for, %v", known, before, after, err)
		}
	}
}

// A monitor of which the process has ended is none, and says so.
func TestMonitorEnds(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	if err := sleep.Start(); err != nil {
		t.Skip("there is no sleep: ", err)
	}
	m := task.Monitor{PID: sleep.Process.Pid}
	if used, err := m.CPU(); err == nil {
		t.Errorf("a program of one thread has a monitor that used %v", used)
	}
	sleep.Process.Kill()
	sleep.Wait()
	if used, err := m.CPU(); err == nil {
		t.Errorf("a process that has ended has a monitor that used %v", used)
	}
}

func BenchmarkMonitor(b *testing.B) {
	known := task.Monitor{PID: os.Getpid()}
	for name, read := range map[string]func() (time.Duration, error){
		"thread=known":      known.CPU,
		"thread=looked-for": func() (time.Duration, error) { return task.SystemMonitor(os.Getpid()) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
