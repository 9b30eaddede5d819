package sys

import (
	"syscall"
	"unsafe"
)

// TellsReadable says that Readable knows.
const TellsReadable = true

// Readable reports whether fd has something to read or, if it is a listener,
// to accept, without waiting for it.
func Readable(fd uintptr) bool {
	const in = 1 // POLLIN
	poll := struct {
		fd             int32
		events, result int16
	}{fd: int32(fd), events: in}
	var now syscall.Timespec
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return errno == 0 && n == 1 && poll.result&in != 0
}
