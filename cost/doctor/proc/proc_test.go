package proc_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/doctor/proc"
)

func linux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("/proc is Linux's")
	}
}

// TestSelf reads this process and holds it against what it knows of itself.
func TestSelf(t *testing.T) {
	linux(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	before, err := proc.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := proc.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) > 0 {
		t.Errorf("warnings %v, want none of one's own process", f.Warnings)
	}
	if f.Build == nil || f.Build.Go != runtime.Version() {
		t.Errorf("build %+v, want %s", f.Build, runtime.Version())
	}
	if f.CPUs != runtime.NumCPU() {
		t.Errorf("%d CPUs, want %d", f.CPUs, runtime.NumCPU())
	}
	if f.Threads < 1 || f.Free < 1<<20 {
		t.Errorf("got %+v, want threads and free memory", f)
	}
	if f.Sockets["listening"] < 1 || f.Sockets["established"] <= before.Sockets["established"] {
		t.Errorf("sockets %v, then %v, want one that listens and one more established", before.Sockets, f.Sockets)
	}
	if f.Dials <= before.Dials || f.OwnNetwork {
		t.Errorf("%d dials, then %d, own network %t, want more, in ours", before.Dials, f.Dials, f.OwnNetwork)
	}
	ports, err := proc.Listening(os.Getpid())
	if err != nil || !slices.Contains(ports, port) {
		t.Errorf("listening on %v, %v, want %d among them", ports, err, port)
	}
	if pid, err := proc.Listener(port); err != nil || pid != os.Getpid() {
		t.Errorf("process %d, %v listens on %d, want %d", pid, err, port, os.Getpid())
	}
}

// TestForeign tells a program that is not Go's from this one.
func TestForeign(t *testing.T) {
	linux(t)
	self, err := proc.Read(os.Getpid())
	if err != nil || self.Foreign() != nil {
		t.Errorf("got %v, %v of this program, want nothing", err, self.Foreign())
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(sleep, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	f, err := proc.Read(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Foreign(); !errors.Is(err, proc.ErrNotGo) {
		t.Errorf("got %v of %s, want %v", err, sleep, proc.ErrNotGo)
	}
	if !proc.IsGo(os.Getpid()) || proc.IsGo(cmd.Process.Pid) {
		t.Errorf("this program is Go: %t, sleep is: %t", proc.IsGo(os.Getpid()), proc.IsGo(cmd.Process.Pid))
	}
}

// Who serves is a descendant of what was started, or that itself.
func TestServer(t *testing.T) {
	linux(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr, self := l.Addr().String(), os.Getpid()
	for _, tt := range []struct {
		pid  int
		addr string
		want int
	}{
		{os.Getppid(), addr, self},
		{self, addr, self},
		{1 << 30, addr, 1 << 30}, // no ancestor of this process
		{os.Getppid(), "127.0.0.1:0", os.Getppid()},
		{os.Getppid(), "localhost", os.Getppid()},
	} {
		if got := proc.Server(tt.pid, tt.addr); got != tt.want {
			t.Errorf("of process %d at %s: got %d, want %d", tt.pid, tt.addr, got, tt.want)
		}
	}
}

func TestNobody(t *testing.T) {
	linux(t)
	if _, err := proc.Read(1 << 30); err == nil || !strings.Contains(err.Error(), "there is no process") {
		t.Errorf("error %v, want that there is no such process", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	if pid, err := proc.Listener(port); err == nil {
		t.Errorf("process %d listens on a port that was closed", pid)
	}
}

func TestElsewhere(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Skip("/proc is here")
	}
	if _, err := proc.Read(os.Getpid()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v, want one that wraps %v", err, errors.ErrUnsupported)
	}
}

// TestMadeUp reads files as kernels show them: the name of a program may hold
// anything, cgroups are of either version, and the tightest of those around a
// process counts.
func TestMadeUp(t *testing.T) {
	linux(t)
	const (
		v2 = "30 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		v1 = "31 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"32 24 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	)
	for _, tc := range []struct {
		name   string
		mounts string
		files  map[string]string
		want   proc.Quota
		limit  int64
	}{
		{"version 2", v2, map[string]string{
			"proc/7/cgroup":                     "0::/shop/web\n",
			"sys/fs/cgroup/shop/web/cpu.max":    "max 100000\n",
			"sys/fs/cgroup/shop/web/memory.max": "268435456\n",
			"sys/fs/cgroup/shop/cpu.max":        "150000 100000\n",
			"sys/fs/cgroup/shop/cpu.stat":       "usage_usec 9\nnr_periods 40\nnr_throttled 3\nthrottled_usec 5000\n",
			"sys/fs/cgroup/shop/memory.max":     "max\n",
			"sys/fs/cgroup/cpu.max":             "400000 100000\n",
		}, proc.Quota{CPUs: 1.5, Period: 100 * time.Millisecond, Periods: 40, Throttled: 3, Waited: 5 * time.Millisecond}, 268435456},
		{"version 1", v1, map[string]string{
			"proc/7/cgroup": "9:name=systemd:/\n4:memory:/shop\n2:cpu,cpuacct:/shop\n",
			"sys/fs/cgroup/cpu,cpuacct/shop/cpu.cfs_quota_us":  "50000\n",
			"sys/fs/cgroup/cpu,cpuacct/shop/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu,cpuacct/shop/cpu.stat":          "nr_periods 10\nnr_throttled 2\nthrottled_time 7000000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":       "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":      "100000\n",
			"sys/fs/cgroup/memory/shop/memory.limit_in_bytes":  "1048576\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
		}, proc.Quota{CPUs: 0.5, Period: 100 * time.Millisecond, Periods: 10, Throttled: 2, Waited: 7 * time.Millisecond}, 1 << 20},
		{"none", v2 + v1, map[string]string{"proc/7/cgroup": "0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, proc.Quota{}, 0},
		{"a path that leads out", v2, map[string]string{"proc/7/cgroup": "0::/../../..\n", "sys/fs/cgroup/cpu.max": "10000 20000\n"}, proc.Quota{CPUs: 0.5, Period: 20 * time.Millisecond}, 0},
	} {
		dir := t.TempDir()
		tc.files["proc/7/stat"] = "7 (web) (x) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 12 0 100 9 9 9\n"
		tc.files["proc/self/mountinfo"] = tc.mounts
		tc.files["proc/7/status"] = "Name:\tweb\nCpus_allowed_list:\t0-3,8\n"
		tc.files["proc/7/environ"] = "HOME=/\x00GOGC=50\x00GOMEMLIMIT=1GiB\x00"
		for name, text := range tc.files {
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		f, err := proc.ReadBelow(dir, 7)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if f.Quota != tc.want || f.Limit != tc.limit {
			t.Errorf("%s: quota %+v, memory %d, want %+v, %d", tc.name, f.Quota, f.Limit, tc.want, tc.limit)
		}
		if f.Threads != 12 || f.CPUs != 5 {
			t.Errorf("%s: got %+v, want 12 threads, 5 CPUs", tc.name, f)
		}
		if f.Environment["GOGC"] != "50" || f.Environment["HOME"] != "" {
			t.Errorf("%s: environment %v, want what begins with GO", tc.name, f.Environment)
		}
		if len(f.Warnings) == 0 {
			t.Errorf("%s: no warning that the program and its sockets are not to be read", tc.name)
		}
	}
}

// TestTimeWait counts connections that were opened here and wait out their time:
// they are of no process. The one that came in on port 8080 was opened elsewhere.
func TestTimeWait(t *testing.T) {
	linux(t)
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the lines are as little-endian machines show them")
	}
	const rest = " 00000000:00000000 03:00000CF9 00000000     0        0 0 3 0000000000000000\n"
	var tcp, tcp6 strings.Builder
	tcp.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	tcp.WriteString("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0000000000000000 100 0 0 10 0\n")
	for i := range 12 {
		fmt.Fprintf(&tcp, "   1: 0100007F:%04X 0200000A:01BB 06"+rest, 40000+i) // to 10.0.0.2:443
		fmt.Fprintf(&tcp, "   1: 0100007F:1F90 0300000A:%04X 06"+rest, 40000+i) // from 10.0.0.3, to the listener
		fmt.Fprintf(&tcp, "   1: 0100007F:%04X 0400000A:01BB 01"+rest, 40000+i) // established
		fmt.Fprintf(&tcp6, "   1: 00000000000000000000000001000000:%04X B80D0120000000000000000001000000:1F90 06"+rest, 40000+i)
		fmt.Fprintf(&tcp6, "   1: 0000000000000000FFFF00000100007F:%04X 0000000000000000FFFF00000200000A:01BB 06"+rest, 50000+i)
	}
	fmt.Fprintf(&tcp, "   1: 0100007F:9999 0500000A:01BB 06"+rest) // one is none
	dir := t.TempDir()
	for name, text := range map[string]string{
		"stat": "7 (web) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 12 0 100 9 9 9\n", "fd/3": "", "net/tcp": tcp.String(), "net/tcp6": tcp6.String(),
	} {
		at := filepath.Join(dir, "proc/7", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := proc.ReadBelow(dir, 7)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"10.0.0.2:443": 24, "[2001:db8::1]:8080": 12}; !maps.Equal(f.TimeWait, want) {
		t.Errorf("in time wait %v, want %v", f.TimeWait, want)
	}
}

// FuzzRead reads whatever a kernel might show.
func FuzzRead(f *testing.F) {
	f.Add("7 (web) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 12 0 100 9 9 9\n", "  0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 9 1\n", "0::/\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, stat, tcp, cgroup string) {
		for name, text := range map[string]string{"stat": stat, "net/tcp": tcp, "cgroup": cgroup, "fd/3": "", "net/snmp": tcp} {
			at := filepath.Join(dir, "proc/7", name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = proc.ReadBelow(dir, 7) // must not panic
	})
}
