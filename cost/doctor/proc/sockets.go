package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// states are the TCP states by the number under which /proc/net/tcp has them.
func state(hex string) string {
	names := [...]string{"", "established", "syn sent", "syn received", "fin wait 1", "fin wait 2", "time wait", "closed", "close wait", "last ack", "listening", "closing"}
	n, err := strconv.ParseUint(hex, 16, 8)
	if err != nil || n == 0 || int(n) >= len(names) {
		return "unknown"
	}
	return names[n]
}

// socket is one line of /proc/net/tcp.
type socket struct {
	state string
	port  int // local
	inode string
}

// socketsOf reads the TCP sockets of a process's network namespace.
func socketsOf(dir string) ([]socket, error) {
	var all []socket
	for _, name := range []string{"tcp", "tcp6"} {
		err := eachLine(filepath.Join(dir, "net", name), func(line string) {
			if s, ok := readSocket(line); ok {
				all = append(all, s)
			}
		})
		if err != nil && (name == "tcp" || !errors.Is(err, fs.ErrNotExist)) { // a kernel may lack IPv6
			return nil, err
		}
	}
	return all, nil
}

// readSocket reads "sl local remote st tx:rx tr:when retrnsmt uid timeout inode …".
func readSocket(line string) (socket, bool) {
	f := strings.Fields(line)
	if len(f) < 10 || f[0] == "sl" {
		return socket{}, false
	}
	_, hex, _ := strings.Cut(f[1], ":")
	port, err := strconv.ParseUint(hex, 16, 16)
	if err != nil {
		return socket{}, false
	}
	return socket{state: state(f[3]), port: int(port), inode: f[9]}, true
}

// inodes returns the sockets that a process has open, by inode, and how many
// files it has open altogether.
func inodes(dir string) (own map[string]bool, files int, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return nil, 0, err
	}
	own = map[string]bool{}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, "fd", e.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own, len(entries), nil
}

func (f *Facts) readSockets(dir string) error {
	own, files, err := inodes(dir)
	if err != nil {
		return err
	}
	f.Files = files
	all, err := socketsOf(dir)
	if err != nil {
		return err
	}
	f.Sockets = map[string]int{}
	for _, s := range all {
		if own[s.inode] {
			f.Sockets[s.state]++
		}
	}
	return nil
}

// readNetwork reads how many connections the namespace has opened, and whether
// it is another than this process's.
func (f *Facts) readNetwork(dir, proc string) error {
	var names []string
	err := eachLine(filepath.Join(dir, "net", "snmp"), func(line string) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Tcp:" {
			return
		}
		if at := slices.Index(names, "ActiveOpens"); at > 0 && at < len(fields) {
			f.Dials, _ = strconv.ParseInt(fields[at], 10, 64)
		}
		names = fields
	})
	if err != nil {
		return err
	}
	theirs, err := os.Readlink(filepath.Join(dir, "ns", "net"))
	if err != nil {
		return err
	}
	ours, err := os.Readlink(filepath.Join(proc, "self", "ns", "net"))
	f.OwnNetwork = err == nil && ours != theirs
	return err
}

// Listening returns the TCP ports on which a process listens, in order.
func Listening(pid int) ([]int, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	own, _, err := inodes(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the sockets of process %d: %w", pid, err)
	}
	all, err := socketsOf(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the sockets of process %d: %w", pid, err)
	}
	var ports []int
	for _, s := range all {
		if own[s.inode] && s.state == "listening" {
			ports = append(ports, s.port)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// Listener returns the process that listens on a TCP port of this network
// namespace. Where several share the port, it is the one with the lowest number.
func Listener(port int) (pid int, err error) {
	if runtime.GOOS != "linux" {
		return 0, fmt.Errorf("looking for who listens on port %d: /proc is Linux's: %w", port, errors.ErrUnsupported)
	}
	all, err := socketsOf("/proc/self")
	if err != nil {
		return 0, err
	}
	wanted := map[string]bool{}
	for _, s := range all {
		if s.port == port && s.state == "listening" {
			wanted[s.inode] = true
		}
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		own, _, err := inodes(dir)
		if err != nil {
			continue // another user's, or gone
		}
		for inode := range own {
			if n, _ := strconv.Atoi(filepath.Base(dir)); wanted[inode] && (pid == 0 || n < pid) {
				pid = n
			}
		}
	}
	if pid == 0 {
		return 0, fmt.Errorf("nobody that may be looked at listens on port %d of this machine", port)
	}
	return pid, nil
}
