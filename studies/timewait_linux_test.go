package studies_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// States of sockets in /proc/net/tcp.
const (
	finWait2 = "05"
	timeWait = "06"
)

// P5.timewait: each connection that the server closes leaves a socket in TIME_WAIT for a minute,
// whatever tcp_fin_timeout says. That bounds FIN_WAIT_2, the state before the other end closes.
func TestTimeWaitIsAMinute(t *testing.T) {
	const connections = 5
	for _, limit := range []time.Duration{60 * time.Second, 30 * time.Second} {
		var left map[string][]time.Duration
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread() // for good, so that the thread ends with its network
			left, err = leave(limit, connections)
		}()
		<-ended
		if errors.Is(err, errNoNetwork) {
			t.Skipf("SKIPPED: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		for state, want := range map[string]struct {
			sockets int
			lasts   time.Duration
		}{timeWait: {connections, time.Minute}, finWait2: {1, limit}} {
			if len(left[state]) != want.sockets {
				t.Errorf("tcp_fin_timeout %s: %d sockets in state %s, want %d", limit, len(left[state]), state, want.sockets)
			}
			for _, lasts := range left[state] {
				if lasts > want.lasts || lasts < want.lasts-10*time.Second {
					t.Errorf("tcp_fin_timeout %s: a socket stays in state %s for %s more, want %s at first", limit, state, lasts, want.lasts)
				}
			}
		}
	}
}

var errNoNetwork = errors.New("no network namespace can be made and set up")

// leave opens and closes so many connections, and one that the client leaves open, in a network
// of the calling thread's own. It returns how long the server's sockets stay, by their state.
func leave(limit time.Duration, connections int) (map[string][]time.Duration, error) {
	if err := ownNetwork(limit); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoNetwork, err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for i := range connections + 1 {
		client, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			return nil, err
		}
		defer client.Close()
		server, err := l.Accept()
		if err != nil {
			return nil, err
		}
		server.Close()
		if i < connections {
			client.Close()
		}
	}
	var left map[string][]time.Duration
	for range 100 { // the last packets may be under way
		if left, err = waiting(l.Addr().(*net.TCPAddr).Port); err != nil || len(left[timeWait]) == connections && len(left[finWait2]) == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return left, err
}

// ownNetwork gives the calling thread a network with nothing but lo.
func ownNetwork(limit time.Duration) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return os.NewSyscallError("ioctl", err)
	}
	return os.WriteFile("/proc/sys/net/ipv4/tcp_fin_timeout", []byte(strconv.Itoa(int(limit.Seconds()))), 0)
}

// waiting is how much longer the sockets of a port wait for the end, by their state.
func waiting(port int) (map[string][]time.Duration, error) {
	const tick = time.Second / 100 // of what the kernel shows
	table, err := os.ReadFile("/proc/thread-self/net/tcp")
	if err != nil {
		return nil, err
	}
	left := map[string][]time.Duration{}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			continue
		}
		if state := fields[3]; state == timeWait || state == finWait2 {
			_, when, _ := strings.Cut(fields[5], ":")
			ticks, err := strconv.ParseInt(when, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", line, err)
			}
			left[state] = append(left[state], time.Duration(ticks)*tick)
		}
	}
	return left, nil
}
