package sys

import "syscall"

// Seal has a listening socket drop the first packet of new connections. Those under way
// are still completed, but soon what there is to accept is all there will be. The client
// of a dropped packet repeats it after a second.
//
// The filter stays with the socket, also in other processes that have it, until Unseal.
// It has no effect on sockets of MPTCP.
func Seal(fd uintptr) error {
	const flags, syn, most = 13, 0x02, 1 << 18 // of the TCP header, where packets begin here
	return syscall.AttachLsf(int(fd), []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: flags},
		{Code: syscall.BPF_JMP | syscall.BPF_JSET | syscall.BPF_K, K: syn, Jt: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: most},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 0},
	})
}

// Unseal ends what Seal began.
func Unseal(fd uintptr) error { return syscall.DetachLsf(int(fd)) }
