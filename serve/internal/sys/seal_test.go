//go:build linux && !386 && !s390x

package sys_test

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/internal/sys"
)

// TestSeal connects before and after a listener is sealed, and after it is unsealed: by
// IPv4 and, where there is any, IPv6.
func TestSeal(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			var config net.ListenConfig
			config.SetMultipathTCP(false)
			l, err := config.Listen(context.Background(), "tcp", addr)
			if err != nil {
				t.Skipf("SKIPPED: listening: %v", err)
			}
			defer l.Close()
			connects := func(within time.Duration) bool {
				nc, err := net.DialTimeout("tcp", l.Addr().String(), within)
				if err == nil {
					nc.Close()
				}
				return err == nil
			}
			do := func(f func(uintptr) error) {
				t.Helper()
				raw, err := l.(syscall.Conn).SyscallConn()
				if err != nil {
					t.Fatal(err)
				}
				var ferr error
				if err := raw.Control(func(fd uintptr) { ferr = f(fd) }); err != nil || ferr != nil {
					t.Fatal(err, ferr)
				}
			}
			const ample = 30 * time.Second
			if !connects(ample) {
				t.Fatal("no connection to a listener")
			}
			do(sys.Seal)
			if connects(300 * time.Millisecond) {
				t.Error("a connection to a sealed listener")
			}
			if nc, err := l.Accept(); err != nil {
				t.Errorf("accepting what came before: %v", err)
			} else {
				nc.Close()
			}
			do(func(fd uintptr) error {
				d, err := sys.Duplicate(fd)
				if err == nil {
					sys.Unseal(d)
				}
				return err
			})
			if !connects(ample) {
				t.Error("no connection to a listener that is sealed no more")
			}
		})
	}
}
