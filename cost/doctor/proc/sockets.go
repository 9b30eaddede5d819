package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/internal/task"
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
	port  int            // local
	peer  netip.AddrPort // the zero one if it cannot be read
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
	return socket{state: state(f[3]), port: int(port), peer: readAddress(f[2]), inode: f[9]}, true
}

// readAddress reads an address as the kernel prints it: 32 bits at a time, each as
// a number of this machine, a colon and the port.
func readAddress(text string) netip.AddrPort {
	words, hex, _ := strings.Cut(text, ":")
	port, err := strconv.ParseUint(hex, 16, 16)
	if err != nil {
		return netip.AddrPort{}
	}
	var raw []byte
	for ; len(words) >= 8; words = words[8:] {
		n, err := strconv.ParseUint(words[:8], 16, 32)
		if err != nil {
			return netip.AddrPort{}
		}
		raw = binary.NativeEndian.AppendUint32(raw, uint32(n))
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok || words != "" {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port))
}

// inodes returns the sockets that a process has open, by inode.
func inodes(dir string) (map[string]bool, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, "fd", e.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return own, nil
}

func (f *Facts) readSockets(dir string) error {
	own, err := inodes(dir)
	if err != nil {
		return err
	}
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
	f.TimeWait = timeWait(all)
	return nil
}

// fewestTimeWait is how many connections to one peer in time wait are worth noting.
const fewestTimeWait = 10

// timeWait counts by peer the connections that this side has opened, has closed
// first, and holds the port of for a minute. The kernel has taken them from their
// process, so that they are the namespace's alone. Those that came in on a port
// where somebody listens were opened by the peer.
func timeWait(all []socket) map[string]int {
	listening := map[int]bool{}
	for _, s := range all {
		listening[s.port] = listening[s.port] || s.state == "listening"
	}
	to := map[string]int{}
	for _, s := range all {
		if s.state == "time wait" && s.peer.IsValid() && !listening[s.port] {
			to[s.peer.String()]++
		}
	}
	maps.DeleteFunc(to, func(_ string, n int) bool { return n < fewestTimeWait })
	return to
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
	own, err := inodes(dir)
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
	numbers, err := task.Processes()
	if err != nil {
		return 0, err
	}
	for _, n := range numbers {
		own, err := inodes(filepath.Join("/proc", strconv.Itoa(n)))
		if err != nil {
			continue // another user's, or gone
		}
		for inode := range own {
			if wanted[inode] && (pid == 0 || n < pid) {
				pid = n
			}
		}
	}
	if pid == 0 {
		return 0, fmt.Errorf("no process that tare may inspect listens on port %d of this machine", port)
	}
	return pid, nil
}

// Server returns the process that listens on a TCP address, host:port, if it descends from
// pid, such as from a shell that started it; else pid.
func Server(pid int, addr string) int {
	where, err := netip.ParseAddrPort(addr)
	if err != nil {
		return pid
	}
	server, err := Listener(int(where.Port()))
	if err != nil {
		return pid
	}
	for at := server; at != pid; {
		stat, err := task.ReadStat(at)
		if err != nil || stat.Parent == 0 {
			return pid
		}
		at = stat.Parent
	}
	return server
}
