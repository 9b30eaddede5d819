package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// threadNamespace is the network namespace of the calling thread.
const threadNamespace = "/proc/thread-self/ns/net"

// enter makes a network namespace with the settings, joins it to the present one, and
// starts the program again within. It returns only what kept it from that.
func enter(o options) error {
	runtime.LockOSThread() // the namespace is this thread's alone until the program starts again
	outer, err := os.Open(threadNamespace)
	if err != nil {
		return err
	}
	defer outer.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("making a network namespace: %w (run as root, or in a user namespace)", err)
	}
	l := newLink(os.Getpid())
	if err := l.join(outer); err != nil {
		return err
	}
	for _, s := range o.settings {
		if err := s.apply(); err != nil {
			return err
		}
	}
	if o.allCPUs {
		var all unix.CPUSet
		all.Fill()
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			return fmt.Errorf("running on all CPUs: %w", err)
		}
	}
	if err := os.Setenv("TARE_ADDR", netip.AddrPortFrom(l.inner, port).String()); err != nil {
		return err
	}
	return fmt.Errorf("starting again: %w", unix.Exec("/proc/self/exe", []string{os.Args[0], "-within"}, os.Environ()))
}

const port = 8080 // free in every namespace of its own

// link is a pair of virtual devices, one in each namespace.
type link struct {
	device       string // in the outer one
	outer, inner netip.Addr
}

// newLink is the link of a process: its device and its addresses are no other's, unless
// process IDs are 32,768 apart.
func newLink(pid int) link {
	const block = 198<<24 | 18<<16 // 198.18.0.0/15
	at := func(n uint32) netip.Addr {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], block+4*(uint32(pid)%(1<<15))+n)
		return netip.AddrFrom4(b)
	}
	return link{device: "tare" + strconv.Itoa(pid), outer: at(1), inner: at(2)}
}

// join makes the pair. The calling thread is in the inner namespace, also afterwards.
func (l link) join(outer *os.File) error {
	inner, err := os.Open(threadNamespace)
	if err != nil {
		return err
	}
	defer inner.Close()
	if err := runIP(outer,
		"link set lo up",
		"link add eth0 type veth peer name "+l.device+" netns /proc/self/fd/3",
		"address add "+l.inner.String()+"/30 dev eth0",
		"link set eth0 up",
	); err != nil {
		return err
	}
	if err := unix.Setns(int(outer.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("returning to the namespace of the start: %w", err)
	}
	err = runIP(nil, "address add "+l.outer.String()+"/30 dev "+l.device, "link set "+l.device+" up")
	return errors.Join(err, unix.Setns(int(inner.Fd()), unix.CLONE_NEWNET))
}

// runIP runs commands of ip(8) in the calling thread's namespace; the other one is its
// file descriptor 3.
func runIP(other *os.File, commands ...string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if other != nil {
		cmd.ExtraFiles = []*os.File{other}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("joining the namespaces by ip: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// apply makes the setting in the calling thread's namespace, and sees that it holds.
func (s setting) apply() error {
	f, err := os.OpenFile(s.path(), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("setting %s: a namespace of its own has no such setting", s.name)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(s.value)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("setting %s to %q: %w", s.name, s.value, err)
	}
	got, err := s.read()
	if want := strings.Join(strings.Fields(s.value), " "); err == nil && got != want {
		err = fmt.Errorf("setting %s to %q: it is %q afterwards", s.name, want, got)
	}
	return err
}

// read returns the value, a space between its parts.
func (s setting) read() (string, error) {
	value, err := os.ReadFile(s.path())
	return strings.Join(strings.Fields(string(value)), " "), err
}

func (s setting) path() string { return "/proc/sys/" + strings.ReplaceAll(s.name, ".", "/") }
