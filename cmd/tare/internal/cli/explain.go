package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"runtime"
	"syscall"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/pprof"
)

// Capture looks at a service by a source, and explains why that is not possible.
func Capture(ctx context.Context, s capture.Service, by capture.Source, o capture.Options) (*capture.Capture, error) {
	t, err := s.Find(ctx, by)
	var c *capture.Capture
	if err == nil {
		c, err = capture.Run(ctx, t, o)
	}
	if err == nil {
		err = c.LoadErr
	}
	return c, ExplainCapture(err)
}

// ExplainCapture adds a remedy to why a service cannot be looked at.
func ExplainCapture(err error) error {
	hint := ""
	var explained *Failure
	var missing *capture.NotFoundError
	var network *capture.NetworkError
	var budget *capture.BudgetError
	switch {
	case errors.As(err, &explained), errors.Is(err, context.Canceled) && !errors.As(err, new(*capture.ProfileError)):
		return err
	case errors.As(err, new(*capture.ProfileError)):
		return ExplainProfile(err)
	case errors.As(err, &missing):
		hint = missing.Remedy
	case errors.As(err, &network):
		hint = NetworkHint(network.PID)
	case errors.As(err, &budget):
		hint = spareHint(budget)
	case errors.Is(err, capture.ErrNoProfiles):
		hint = `only the service itself can give these profiles: import _ "net/http/pprof" and serve http.DefaultServeMux on a loopback port, or mount serve/middleware/flight`
	case errors.Is(err, bpf.ErrEnded), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		hint = "it has ended, or never was: pgrep -a NAME shows those that are there"
	case errors.Is(err, cost.ErrNotSupported):
		hint = "tare cost URL needs nothing of this, only net/http/pprof in the service; `tare help cost` says what --pid needs"
	case errors.Is(err, fs.ErrPermission):
		hint = "it is another user's: that needs root, or the capability CAP_SYS_PTRACE; a service that exposes its profiles can be named by its URL instead"
	default:
		return err
	}
	return &Failure{Status: ExitFailed, Err: err, Hint: hint}
}

// NetworkHint says how to reach a process by its ports from its own network namespace.
func NetworkHint(pid int) string {
	return fmt.Sprintf("process %d has a network of its own, with ports of its own: nsenter -t %d -n tare … looks and loads from there", pid, pid)
}

// ListenHint says what to do about an address that cannot be listened on; where is what names it.
func ListenHint(err error, where string) string {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return where + " takes a free port of this machine, such as :9464"
	}
	show := "lsof -nP -iTCP -sTCP:LISTEN"
	if runtime.GOOS == "linux" {
		show = "ss -ltnp"
	}
	return fmt.Sprintf("another program listens there, and `%s` shows which; end that, or set %s to another address", show, where)
}

// spareHint says how much would fit into the budget.
func spareHint(e *capture.BudgetError) string {
	hint := fmt.Sprintf("--max-overhead %.0f%% would do", math.Ceil(100*e.Share))
	if fits := e.Fits(); fits > 0 {
		hint = fmt.Sprintf("name at most %d of the %d owners, --owner NAME; or %s", fits, e.Owners, hint)
	}
	return hint
}

// ExposeHint is what a service must do to be profiled.
const ExposeHint = `the service must expose its profiles: import _ "net/http/pprof" and serve http.DefaultServeMux on a port of its own; or name its process, --pid N, which as root on Linux needs no change to it`

// ExplainProfile explains why a service does not hand its profile over.
func ExplainProfile(err error) *Failure {
	f := &Failure{Status: ExitFailed, Err: err, Hint: ExposeHint}
	var name *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		f.Status = ExitInterrupted
		f.Err = errors.New("interrupted: a service hands its profile over at the end, so there is nothing to show")
		f.Hint = "--for 5s takes less time; tare cost --pid N keeps what it has seen when it is interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		f.Hint = "it took the connection and did not answer in time: is it stopped, stuck or overloaded? tare cost --pid N asks nothing of it"
	case errors.Is(err, pprof.ErrEnded):
		f.Status = ExitEnded
		f.Hint = "a service hands its profile over at the end, so there is nothing to show; tare cost --pid N keeps what it has seen when the process ends"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Hint = "nothing listens there: start the service, or check the port"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		f.Hint = "it closed the connection before it had answered: did the service stop or restart, and does that port speak plain HTTP?"
	case errors.Is(err, pprof.ErrTooLarge), errors.Is(err, pprof.ErrImplausible):
		f.Hint = "is that a Go service's pprof end point?"
	case errors.As(err, &name):
		f.Hint = "no machine of that name is known; if a file or folder was meant, there is none"
		if _, err := os.Stat(name.Name); err == nil {
			f.Hint = name.Name + " is a file or folder here and was taken for a machine: saved files are read by tare cost --profile FILE, tare doctor --from FILE, tare flame FILE, tare trace FILE and tare diff A B, a folder of tare watch --keep by tare doctor --since 1h DIR"
		}
	}
	return f
}
