//go:build linux && amd64

package reply_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tarehq/tare/cost/bpf/reply"
	"github.com/tarehq/tare/internal/task"
	"github.com/tarehq/tare/internal/toggle"
)

// BenchmarkWatching says what timing answers costs: CPU per request of a server of
// net/http and of its client together, since data arrives at one while the other
// sends, while answers are timed against while they are not, in pairs of windows of a
// quarter of a second, in random order, within one process of each. watched=0 is the
// same with another process watched: what all others on the machine pay.
//
//	go test ./cost/bpf/reply -run - -bench Watching -benchtime 100x
func BenchmarkWatching(b *testing.B) {
	b.Run("watched=1", func(b *testing.B) { watching(b, true) })
	b.Run("watched=0", func(b *testing.B) { watching(b, false) })
}

func watching(b *testing.B, itself bool) {
	l := listen(b)
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child(b, "heir", cmd)
	var answered atomic.Int64
	for range 2 {
		go ask(dial(b, l), &answered)
	}
	pid := cmd.Process.Pid
	if !itself {
		pid = os.Getppid()
	}
	w := start(b, pid)
	toggled(b, w, false)
	runtime.GC()              // what reading the kernel's types has left
	var cpu, requests float64 // while nobody watches
	toggle.Compare(b, func(on bool) float64 {
		if on {
			toggled(b, w, true)
			defer toggled(b, w, false)
		}
		spent, n := used(b, cmd.Process.Pid, &answered)
		if !on {
			cpu, requests = cpu+spent, requests+n
		}
		return spent / n
	})
	b.ReportMetric(cpu/requests, "ns/request")
	b.ReportMetric(counted(b, w, &answered), "ns/watching")
}

// counted returns the nanoseconds that the programs take a request, as the kernel
// counts them.
func counted(b *testing.B, w *reply.Watch, answered *atomic.Int64) float64 {
	b.Helper()
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	toggled(b, w, true)
	defer toggled(b, w, false)
	before, n := took(b, w), answered.Load()
	time.Sleep(time.Second)
	return float64(took(b, w)-before) / float64(max(1, answered.Load()-n))
}

func took(b *testing.B, w *reply.Watch) time.Duration {
	b.Helper()
	d, err := w.Took()
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// toggled has the programs run, or not.
func toggled(b *testing.B, w *reply.Watch, on bool) {
	b.Helper()
	if err := w.Toggle(on); err != nil {
		b.Fatal(err)
	}
}

// ask puts requests until the connection is closed.
func ask(c net.Conn, answered *atomic.Int64) {
	request, answer := []byte("GET / HTTP/1.1\r\nHost: there\r\n\r\n"), make([]byte, 1<<12)
	for {
		if _, err := c.Write(request); err != nil {
			return
		}
		for got := 0; !bytes.HasSuffix(answer[:got], []byte("hello")); {
			n, err := c.Read(answer[got:])
			if err != nil {
				return
			}
			got += n
		}
		answered.Add(1)
	}
}

// used returns the nanoseconds of CPU that a process and this one used within a
// quarter of a second, and how many requests were answered.
func used(b *testing.B, pid int, answered *atomic.Int64) (cpu, requests float64) {
	b.Helper()
	read := func() (float64, int64) {
		theirs, err := task.CPU(pid)
		if err != nil {
			b.Fatal(err)
		}
		ours, err := task.CPU(os.Getpid())
		if err != nil {
			b.Fatal(err)
		}
		return float64(theirs + ours), answered.Load()
	}
	before, n := read()
	time.Sleep(250 * time.Millisecond)
	after, m := read()
	return after - before, float64(m - n)
}
