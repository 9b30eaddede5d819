//go:build !race && (amd64 || arm64)

package sys_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/internal/sys"
)

// TestNothingWaits reads and writes a socket that somebody has told to block, as os.File.Fd
// does: the calls come back at once all the same.
func TestNothingWaits(t *testing.T) {
	near, far := sockets(t)
	file, err := near.File()
	if err != nil {
		t.Fatal(err)
	}
	file.Fd()
	file.Close()
	raw, err := near.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*time.Second, func() { far.Close() }) // ends what waits
	defer late.Stop()
	full := make([]byte, 16<<20)
	raw.Control(func(fd uintptr) {
		if n, errno := sys.Read(fd, make([]byte, 1)); errno != syscall.EAGAIN {
			t.Errorf("reading where nothing has come: %d, %v; want EAGAIN", n, errno)
		}
		for name, write := range map[string]func() (int, syscall.Errno){
			"Write":     func() (int, syscall.Errno) { return sys.Write(fd, full) },
			"WriteBoth": func() (int, syscall.Errno) { return sys.WriteBoth(fd, full[:1], full) },
		} {
			taken, errno := 0, syscall.Errno(0)
			for errno == 0 && taken < len(full) { // the kernel makes room for a while
				var n int
				n, errno = write()
				taken += n
			}
			if errno != syscall.EAGAIN {
				t.Errorf("%s takes %d bytes that nobody reads, then %v; want EAGAIN", name, taken, errno)
			}
		}
	})
}
