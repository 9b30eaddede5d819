package arm

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// tcpListen is the kernel's number of the state LISTEN.
const tcpListen = 10

// Listening returns the addresses, host:port, on which the arm and its descendants
// listen, the one that it was told first. One on every address is asked on 127.0.0.1.
func (a *Process) Listening() ([]string, error) {
	if err := a.alive(); err != nil {
		return nil, err
	}
	members, err := family(a.PID(), a.guard.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	own := map[uint64]bool{}
	for _, m := range members {
		addSockets(own, m.PID)
	}
	fs, err := procfs.NewFS(fmt.Sprintf("/proc/%d", a.PID())) // of its network namespace
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 netlink answers for tare's own network namespace, /proc for the arm's
	v4, err := fs.NetTCP()
	//lint:ignore SA1019 as above; a kernel may lack IPv6
	v6, err6 := fs.NetTCP6()
	if err != nil && err6 != nil {
		return nil, errors.Join(err, err6)
	}
	var found []string
	for _, s := range append(v4, v6...) {
		ip, ok := netip.AddrFromSlice(s.LocalAddr)
		if !ok || s.St != tcpListen || !own[s.Inode] {
			continue
		}
		if ip = ip.Unmap(); ip.IsUnspecified() {
			ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		found = append(found, netip.AddrPortFrom(ip, uint16(s.LocalPort)).String())
	}
	found = slices.Compact(slices.Sorted(slices.Values(found)))
	if i := slices.Index(found, a.addr); i > 0 {
		found = slices.Insert(slices.Delete(found, i, i+1), 0, a.addr)
	}
	return found, nil
}

// addSockets adds the sockets that a process has open, by inode. A process that ended
// meanwhile has none.
func addSockets(own map[uint64]bool, pid int) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return
	}
	targets, err := p.FileDescriptorTargets()
	if err != nil {
		return
	}
	for _, target := range targets {
		inode, ok := strings.CutPrefix(target, "socket:[")
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSuffix(inode, "]"), 10, 64); err == nil {
			own[n] = true
		}
	}
}
