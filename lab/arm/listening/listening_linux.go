// Package listening finds, from the kernel, where processes listen for TCP connections.
package listening

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// tcpListen is the kernel's number of the state LISTEN.
const tcpListen = 10

// Addresses returns where the processes listen, as host:port, sorted. All are in the network
// namespace of the first. A socket on every address is asked on 127.0.0.1 or, if it is one of
// IPv6, on ::1, which alone reaches it where it refuses IPv4. Addresses at which another process
// listens are left out: some connections would be its. It is an error if no others remain.
func Addresses(pids ...int) ([]string, error) {
	own := map[uint64]bool{}
	for _, pid := range pids {
		addSockets(own, pid)
	}
	fs, err := procfs.NewFS(fmt.Sprintf("/proc/%d", pids[0]))
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 netlink answers for tare's own network namespace, /proc for the process's
	v4, err := fs.NetTCP()
	//lint:ignore SA1019 as above; a kernel may lack IPv6
	v6, err6 := fs.NetTCP6()
	if err != nil && err6 != nil {
		return nil, errors.Join(err, err6)
	}
	var asked, foreign []string
	for _, s := range append(v4, v6...) {
		ip, ok := netip.AddrFromSlice(s.LocalAddr)
		if !ok || s.St != tcpListen {
			continue
		}
		at := reachableAt(ip.Unmap(), uint16(s.LocalPort))
		if own[s.Inode] {
			asked = append(asked, at...)
		} else {
			foreign = append(foreign, at[len(at)-1])
		}
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	shared := ""
	alone := slices.DeleteFunc(slices.Clone(asked), func(at string) bool {
		if slices.Contains(foreign, at) {
			shared = at
		}
		return slices.Contains(foreign, at)
	})
	if len(alone) == 0 && shared != "" {
		return nil, fmt.Errorf("listening on %s: address already in use, by another process too", shared)
	}
	return alone, nil
}

// reachableAt are the addresses at which a socket may be reached, the last of its own family.
func reachableAt(ip netip.Addr, port uint16) []string {
	const loopback4, loopback6 = "127.0.0.1:%d", "[::1]:%d"
	switch ip {
	case netip.IPv4Unspecified():
		return []string{fmt.Sprintf(loopback4, port)}
	case netip.IPv6Unspecified():
		return []string{fmt.Sprintf(loopback4, port), fmt.Sprintf(loopback6, port)}
	}
	return []string{netip.AddrPortFrom(ip, port).String()}
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
		var inode uint64
		if strings.HasPrefix(target, "socket:[") {
			if _, err := fmt.Sscanf(target, "socket:[%d]", &inode); err == nil {
				own[inode] = true
			}
		}
	}
}
