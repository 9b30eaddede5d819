package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/capture"
)

// What keeps a service from being profiled is distinguished: only one that answered,
// and without a profile, is advised to expose it.
func TestUnprofiled(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		hint   string
	}{
		{errors.New("answered 404 Not Found"), cli.ExitFailed, "net/http/pprof"},
		{fmt.Errorf("asking: %w", syscall.ECONNREFUSED), cli.ExitFailed, "nothing listens there"},
		{fmt.Errorf("asking: %w", &net.DNSError{Err: "no such host", Name: "nodir"}), cli.ExitFailed, "no machine of that name"},
		{fmt.Errorf("asking: %w", &net.DNSError{Err: "no such host", Name: "testdata"}), cli.ExitFailed, "testdata is a file or folder here"},
		{fmt.Errorf("asking: %w", context.DeadlineExceeded), cli.ExitFailed, "did not answer in time"},
		{fmt.Errorf("asking: %w", io.EOF), cli.ExitFailed, "did the service stop"},
		{fmt.Errorf("asking: %w", io.ErrUnexpectedEOF), cli.ExitFailed, "did the service stop"},
		{fmt.Errorf("asking: %w", syscall.ECONNRESET), cli.ExitFailed, "did the service stop"},
		{fmt.Errorf("asking: %w", context.Canceled), cli.ExitInterrupted, "--pid N keeps"},
	} {
		got := cli.ExplainProfile(tt.err)
		if got.Status != tt.status || !strings.Contains(got.Hint, tt.hint) {
			t.Errorf("%v: got status %d and hint %q, want %d and %q", tt.err, got.Status, got.Hint, tt.status, tt.hint)
		}
	}
}

// A budget that is too small says how much would fit.
func TestExplainBudget(t *testing.T) {
	for _, tt := range []struct {
		name   string
		owners int
		share  float64 // of the CPU, while calls are timed for a tenth of the time
		most   float64
		hint   string
	}{
		{"some would fit", 8, 0.08, 0.05, "name at most 5 of the 8 owners, --owner NAME; or --max-overhead 8% would do"},
		{"none would", 3, 0.9, 0.05, "--max-overhead 90% would do"},
	} {
		err := cli.ExplainCapture(&capture.BudgetError{Owners: tt.owners, Share: tt.share, Most: tt.most})
		var f *cli.Failure
		if !errors.As(err, &f) || f.Status != cli.ExitFailed || f.Hint != tt.hint {
			t.Errorf("%s: got %#v, want status %d and hint %q", tt.name, err, cli.ExitFailed, tt.hint)
		}
		if want := fmt.Sprintf("timing calls of %d owners", tt.owners); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, want it to say %q", tt.name, err, want)
		}
	}
}

func TestExplainCapture(t *testing.T) {
	refused := &cli.Failure{Status: cli.ExitFailed, Hint: "fewer"}
	for _, tt := range []struct {
		err  error
		hint string
	}{
		{fmt.Errorf("no process 7: %w", os.ErrNotExist), "it has ended, or never was: pgrep -a NAME shows those that are there"},
		{fmt.Errorf("sampling: %w", cost.ErrNotSupported), "tare cost URL needs nothing of this, only net/http/pprof in the service; `tare help cost` says what --pid needs"},
		{&capture.LoadError{Err: syscall.ECONNREFUSED, Network: &capture.NetworkError{PID: 7}}, "process 7 has a network of its own, with ports of its own: nsenter -t 7 -n tare … looks and loads from there"},
		{&capture.LoadError{Err: syscall.ECONNREFUSED}, ""},
		{&capture.ProfileError{Err: syscall.ECONNREFUSED}, "nothing listens there: start the service, or check the port"},
		{&capture.NotFoundError{Err: errors.New("no such group"), Remedy: "another"}, "another"},
		{fmt.Errorf("process 7 shows %w", capture.ErrNoProfiles), `only the service itself can give these profiles: import _ "net/http/pprof" and serve http.DefaultServeMux on a loopback port, or mount serve/middleware/flight`},
		{refused, "fewer"},
		{errors.New("something else"), ""},
	} {
		var f *cli.Failure
		hint := ""
		if errors.As(cli.ExplainCapture(tt.err), &f) {
			hint = f.Hint
		}
		if hint != tt.hint {
			t.Errorf("%v: got hint %q, want %q", tt.err, hint, tt.hint)
		}
	}
}

// TestListenHint says who may have an address, where one has it, and which option names it.
func TestListenHint(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = net.Listen("tcp", l.Addr().String())
	if got := cli.ListenHint(err, "--listen"); runtime.GOOS == "linux" && !strings.Contains(got, "`ss -ltnp` shows which; end that, or set --listen") {
		t.Errorf("%v: got %q", err, got)
	}
	_, err = net.Listen("tcp", "203.0.113.1:80") // of no machine
	if got := cli.ListenHint(err, "--listen"); !strings.HasPrefix(got, "--listen takes a free port") {
		t.Errorf("%v: got %q", err, got)
	}
}
