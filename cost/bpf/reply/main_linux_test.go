//go:build linux && amd64

package reply_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// roleOf is set where this program is not to test but to be watched.
const roleOf = "TARE_REPLY_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleOf) {
	case "alone":
		be(alone())
	case "heir":
		be(heir())
	}
	os.Exit(m.Run())
}

func be(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// alone serves itself, in a network of its own: four requests for each line.
func alone() error {
	if err := up(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(l, http.HandlerFunc(lazily))
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println("done") {
		for range 4 {
			res, err := http.Get("http://" + l.Addr().String() + "/late")
			if err != nil {
				return err
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	return nil
}

// up has the network's only device work.
func up() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}

// heir serves on a listener that it has from its parent.
func heir() error {
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return http.Serve(l, http.HandlerFunc(lazily))
}

// child runs this program in another role, until the test ends.
func child(t testing.TB, role string, cmd *exec.Cmd) (in io.Writer, out *bufio.Scanner) {
	t.Helper()
	cmd.Env = append(os.Environ(), roleOf+"="+role)
	cmd.Stderr = os.Stderr
	w, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("starting a process, in namespaces of its own: %v", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	out = bufio.NewScanner(r)
	if out.Scan(); out.Text() != "ready" {
		t.Fatalf("got %q of the process, want it ready", out.Text())
	}
	return w, out
}

// TestNamespaces times answers of a process that has a network and numbers of
// processes of its own.
func TestNamespaces(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	in, out := child(t, "alone", cmd)
	w := start(t, cmd.Process.Pid)
	io.WriteString(in, "\n")
	if out.Scan(); out.Text() != "done" {
		t.Fatalf("got %q, want it done", out.Text())
	}
	if all, slow := ended(t, w); all != 4 || slow != 4 {
		t.Errorf("got %d waits, %d of them late, want 4, all late", all, slow)
	}
}

// TestOthers leaves out connections that another process accepts where this one
// listens, too.
func TestOthers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child(t, "heir", cmd)
	w := start(t, os.Getpid())
	for range 4 {
		get(t, http.DefaultClient, "http://"+l.Addr().String()+"/late")
	}
	if all, _ := ended(t, w); all != 0 {
		t.Errorf("got %d waits, want none", all)
	}
	w = start(t, cmd.Process.Pid)
	get(t, http.DefaultClient, "http://"+l.Addr().String()+"/late")
	if all, slow := ended(t, w); all != 1 || slow != 1 {
		t.Errorf("of the other process: got %d waits, %d of them late, want one, late", all, slow)
	}
}
