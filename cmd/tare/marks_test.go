package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/bpf/probe"
)

func TestMarksRefuse(t *testing.T) {
	tests := []struct {
		name  string
		calls int
		share float64 // of the CPU, while probes are attached
		most  float64
		hint  string
	}{
		{"some would fit", 8, 0.8, 0.05, "name at most 5 of the 8 owners, --owner NAME; or --max-overhead 8% would do"},
		{"none would", 3, 9, 0.05, "--max-overhead 90% would do"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := marks{Most: tt.most}.refuse(&probe.Forecast{Share: tt.share, Calls: make([]float64, tt.calls)})
			var f *cli.Failure
			if !errors.As(err, &f) || f.Status != cli.ExitFailed || f.Hint != tt.hint {
				t.Fatalf("got %#v, want status %d and hint %q", err, cli.ExitFailed, tt.hint)
			}
			if want := fmt.Sprintf("watching %d owners", tt.calls); !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want it to say %q", err, want)
			}
		})
	}
}

// TestMarksInterrupted has it said, for text and JSON alike, that marks are missing or
// of a shorter time because somebody interrupted.
func TestMarksInterrupted(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	failed := errors.New("no probes here")
	m := &probe.Measurement{Attached: 1500 * time.Millisecond, Requests: 30}
	for _, tc := range []struct {
		name     string
		ctx      context.Context
		m        *probe.Measurement
		err      error
		warning  string
		requests float64
	}{
		{"before", interrupted, nil, context.Canceled, "no counts and times of calls (--marks)", 0},
		{"amid", interrupted, m, nil, "calls were watched for 1.50 s", 200},
		{"not", t.Context(), m, nil, "requests were counted while calls were watched, after the sampling", 200},
		{"not to be had", t.Context(), nil, failed, "", 0},
	} {
		b := &bill{window: cost.Window{Duration: 10 * time.Second}}
		b.mark(tc.ctx, tc.m, tc.err)
		if got := strings.Join(b.sum().Warnings, "; "); (got == "") != (tc.warning == "") || !strings.Contains(got, tc.warning) {
			t.Errorf("%s: warnings %q, want %q", tc.name, got, tc.warning)
		}
		if b.marked != tc.m || b.window.Requests != tc.requests || (b.unmarked == failed) != (tc.err == failed) {
			t.Errorf("%s: got %+v, %g requests, %v", tc.name, b.marked, b.window.Requests, b.unmarked)
		}
	}
}

func TestAddMarks(t *testing.T) {
	owner := cost.Owner{Kind: cost.Handler, Name: "mw.Auth", File: "/src/mw/auth.go", Decl: 7}
	wall := cost.Wall{Owner: owner, Calls: 100, Seen: 100, Self: 2e6, Total: 5e6, P50: 19e3, P99: 40e3}
	tests := []struct {
		name     string
		requests float64 // counted while it was watched
		bill     cost.Window
		want     string
	}{
		{"counted", 50, cost.Window{Duration: 10 * time.Second, Requests: 900}, "clock: 2 a request, p50 19.0 µs, p99 40.0 µs, mean 20.0 µs, total 50.0 µs"},
		{"counted by the load alone", 0, cost.Window{Duration: 10 * time.Second, Requests: 200}, "clock: 5 a request, p50 19.0 µs, p99 40.0 µs, mean 20.0 µs, total 50.0 µs"},
		{"not counted", 0, cost.Window{Duration: 10 * time.Second}, "clock: 100 a second, p50 19.0 µs, p99 40.0 µs, mean 20.0 µs, total 50.0 µs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := cost.NewBill(nil, nil, tt.bill)
			idle := cost.NewBill(nil, nil, tt.bill)
			if addMarks(idle, &probe.Measurement{Walls: []cost.Wall{{Owner: owner}}, Attached: time.Second}); len(idle.Warnings) > 0 {
				t.Errorf("of a service without requests and calls: got warnings %q", idle.Warnings)
			}
			addMarks(b, &probe.Measurement{Walls: []cost.Wall{wall}, Attached: time.Second, Requests: tt.requests, Warnings: []error{errors.New("as it happens")}})
			var told []string
			if tt.requests == 0 && tt.bill.Requests > 0 {
				told = append(told, "where requests begin is not known")
			}
			told = append(told, "as it happens")
			begins := func(got, want string) bool { return strings.HasPrefix(got, want) }
			if len(b.Items) != 1 || !slices.EqualFunc(b.Warnings, told, begins) {
				t.Fatalf("got %+v, want one owner and warnings that begin with %q", b, told)
			}
			if got := wallText(&b.Items[0], b.Per); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCallTime does not tell a time that is shorter than what the probes leave.
func TestCallTime(t *testing.T) {
	for ns, want := range map[float64]string{0: "below 100 ns", 0.861: "below 100 ns", 99.9: "below 100 ns", 100: "100 ns", 22e3: "22.0 µs"} {
		if got := callTime(ns); got != want {
			t.Errorf("%v ns: got %q, want %q", ns, got, want)
		}
	}
}

func TestUnprobed(t *testing.T) {
	refused := &cli.Failure{Status: cli.ExitFailed, Hint: "fewer"}
	tests := []struct {
		err  error
		hint string
	}{
		{fmt.Errorf("no process 7: %w", os.ErrNotExist), "is the process still running?"},
		{fmt.Errorf("loading: %w", cost.ErrNotSupported), "tare cost URL needs neither root nor probes, only net/http/pprof in the service"},
		{refused, "fewer"},
		{errors.New("something else"), ""},
	}
	for _, tt := range tests {
		var f *cli.Failure
		hint := ""
		if errors.As(unprobed(tt.err), &f) {
			hint = f.Hint
		}
		if hint != tt.hint {
			t.Errorf("%v: got hint %q, want %q", tt.err, hint, tt.hint)
		}
	}
}
