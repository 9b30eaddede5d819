package studies_test

import (
	"errors"
	"fmt"
	"io"
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
func TestTimeWait(t *testing.T) {
	const connections = 5
	for _, limit := range []time.Duration{60 * time.Second, 30 * time.Second} {
		var left map[string][]time.Duration
		inNetwork(t, map[string]string{"tcp_fin_timeout": strconv.Itoa(int(limit.Seconds()))}, func() (err error) {
			left, err = leave(connections)
			return err
		})
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

// The socket in TIME_WAIT keeps its port, at the end that closed first. If that is the client's, its
// ports run out after so many connections as it has, whatever tcp_tw_reuse says: that frees a port
// after a second at the earliest. If it is the server's, connections go on.
func TestTimeWaitTakesPorts(t *testing.T) {
	for _, ports := range []int{100, 200} {
		for _, reuse := range []string{"0", "1", "2"} {
			settings := map[string]string{"ip_local_port_range": fmt.Sprint(40_000, " ", 40_000+ports-1), "tcp_tw_reuse": reuse}
			for _, first := range []string{"client", "server"} {
				what := fmt.Sprintf("%d ports, tcp_tw_reuse %s, the %s closes first", ports, reuse, first)
				awaitSecond(t)
				made, begun := 0, time.Now()
				inNetwork(t, settings, func() (err error) {
					made, err = connect(3*ports, first == "client")
					return err
				})
				switch took := time.Since(begun); {
				case first == "server" && made != 3*ports:
					t.Errorf("%s: %d connections could be made, want all of %d", what, made, 3*ports)
				case first == "client" && took > time.Second/2:
					t.Logf("%s: not judged, it took %s", what, took)
				case first == "client" && (made > ports || made < ports-2):
					t.Errorf("%s: %d connections could be made, want as many as ports", what, made)
				}
			}
		}
	}
}

// awaitSecond waits until half a second is left at least of the second that the kernel's clock is in:
// it tells by whole seconds whether one has passed.
func awaitSecond(t *testing.T) {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	if into := time.Duration(now.Nsec); into > time.Second/2 {
		time.Sleep(time.Second - into)
	}
}

// connect makes connections one after the other, each of which the client or the server closes
// first. It returns how many could be made until there was no port.
func connect(most int, clientFirst bool) (made int, err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:8080")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	for made < most {
		client, err := net.Dial("tcp4", l.Addr().String())
		if errors.Is(err, unix.EADDRNOTAVAIL) {
			return made, nil
		}
		if err != nil {
			return made, err
		}
		server, err := l.Accept()
		if err != nil {
			return made, err
		}
		one, other := server, client
		if clientFirst {
			one, other = client, server
		}
		one.Close()
		_, _ = io.Copy(io.Discard, other) // to the end that the first has told
		other.Close()
		made++
	}
	return made, nil
}

// inNetwork runs f on a thread with a network of its own, which has these settings.
func inNetwork(t *testing.T, settings map[string]string, f func() error) {
	t.Helper()
	var lacks, err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // for good, so that the thread ends with its network
		if lacks = ownNetwork(settings); lacks == nil {
			err = f()
		}
	}()
	<-ended
	if lacks != nil {
		t.Skipf("SKIPPED: no network namespace can be made and set up: %v", lacks)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// leave opens and closes so many connections, and one that the client leaves open. It returns how
// long the server's sockets stay, by their state.
func leave(connections int) (map[string][]time.Duration, error) {
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
func ownNetwork(settings map[string]string) error {
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
	for name, value := range settings {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
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
