//go:build linux

package arm_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/arm"
)

func TestUsageAgreesWithTheProcessItself(t *testing.T) {
	a := begin(t, "serves", arm.Program{}, arm.StartOptions{})
	before := usage(t, a)
	said := time.Duration(number(t, asks(t, a, "/spin")))
	after := usage(t, a)
	// A thread that runs on another CPU is counted up to its last tick.
	const tick = 10 * time.Millisecond
	if before.CPU > said || after.CPU < said-tick || after.CPU-before.CPU < 40*time.Millisecond {
		t.Errorf("CPU: got %v before and %v after the process said %v", before.CPU, after.CPU, said)
	}
	if after.Processes != 1 || after.Threads < 2 || after.Voluntary == 0 || after.MinorFaults == 0 {
		t.Errorf("got %+v, want one process with threads, switches and faults", after)
	}
}

func TestUsageOfMemory(t *testing.T) {
	a := begin(t, "serves", arm.Program{}, arm.StartOptions{})
	before := usage(t, a)
	asks(t, a, "/touch") // 32 MiB
	after := usage(t, a)
	const most = 24 << 20 // of them at least: other pages come and go meanwhile
	if after.PeakRSS < before.PeakRSS+most || after.MinorFaults < before.MinorFaults+16 {
		t.Errorf("after touching 32 MiB: got %+v, before %+v", after, before)
	}
	if after.PSS == 0 || after.PSS > after.PeakRSS || after.RSS > after.PeakRSS+1<<20 {
		t.Errorf("got PSS %d, RSS %d, peak %d, want the peak highest", after.PSS, after.RSS, after.PeakRSS)
	}
	if u, err := a.Usage(false); err != nil || u.PSS != 0 {
		t.Errorf("PSS not asked for: got %d, %v, want 0", u.PSS, err)
	}
	asks(t, a, "/free")
	if u := usage(t, a); u.PeakRSS < after.PeakRSS {
		t.Errorf("after freeing them: got peak %d, want at least %d as before", u.PeakRSS, after.PeakRSS)
	}
}

func usage(t *testing.T, a *arm.Process) arm.Usage {
	t.Helper()
	u, err := a.Usage(true)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSockets(t *testing.T) {
	a := begin(t, "closes", arm.Program{}, arm.StartOptions{})
	before, err := a.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	if before["LISTEN"] != 1 {
		t.Errorf("sockets of a server: got %v, want one that listens", before)
	}
	const n = 20
	for range n {
		c, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "GET /ping HTTP/1.0\r\n\r\n")
		io.Copy(io.Discard, c) // until the server has closed: who closes first waits
		c.Close()
	}
	var after arm.Sockets
	for range 1000 { // until the kernel has seen the last of each
		if after, err = a.Sockets(); err != nil {
			t.Fatal(err)
		}
		if after["TIME_WAIT"] >= n { // the probe's connection may be another
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("after %d connections that the server closed: got %v, before %v", n, after, before)
}
