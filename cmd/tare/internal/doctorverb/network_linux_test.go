package doctorverb

import (
	"net"
	"net/http"
	"net/http/httptest"
	httppprof "net/http/pprof"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/tarehq/tare/cost/doctor"
)

// A process in a network namespace of its own is not taken for the service that shows
// its profiles here on a port of the same number.
func TestDoctorOwnNetwork(t *testing.T) {
	here := httptest.NewServer(http.HandlerFunc(httppprof.Index))
	defer here.Close()
	_, port, err := net.SplitHostPort(here.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	type contained struct {
		thread int
		err    error
	}
	begun, end := make(chan contained), make(chan struct{})
	defer close(end)
	var leave func()
	leave = func() {
		runtime.LockOSThread() // for good: it ends with this function
		if syscall.Gettid() == syscall.Getpid() {
			go leave() // on another thread: the first one's network is the test's own
			<-end
			runtime.UnlockOSThread()
			return
		}
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			begun <- contained{err: err}
			return
		}
		l, err := net.Listen("tcp4", ":"+port)
		if err != nil {
			begun <- contained{err: err}
			return
		}
		defer l.Close()
		begun <- contained{thread: syscall.Gettid()}
		<-end
	}
	go leave()
	c := <-begun
	if c.err != nil {
		t.Skipf("no network namespace to be had: %v", c.err)
	}
	p := &patient{pid: c.thread, reasons: map[doctor.Part]string{}}
	if err := p.findProcess(t.Context()); err != nil {
		t.Fatal(err)
	}
	if why := p.reasons[doctor.CPUProfile]; p.target.Profiles != nil || !strings.Contains(why, "nsenter -t ") {
		t.Errorf("taken for %v, reason %q, want no service and how to look from its network", p.target.Profiles, why)
	}
}
