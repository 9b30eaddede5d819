package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
)

// A verb that hangs on its output ends after one interruption.
func TestInterruptEndsVerbs(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{"list", "claims", "version", "completion bash"} {
		t.Run(args, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(context.Background())
			defer interrupt()
			r, w := io.Pipe()
			defer r.Close() // the verb left behind ends with it
			go func() {
				io.ReadFull(r, make([]byte, 1)) // then nobody reads any more
				interrupt()
			}()
			var said strings.Builder
			got := run(ctx, strings.Fields(args), &cli.Terminal{Out: w, Err: &said, Width: 80})
			if got != cli.ExitInterrupted || !strings.Contains(said.String(), "interrupted") {
				t.Errorf("got exit status %d and %q, want %d and that it was interrupted", got, said.String(), cli.ExitInterrupted)
			}
		})
	}
}

// So does one that is given the context and hangs where it does not look at it.
func TestInterruptEndsWindingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		hang := make(chan struct{})
		defer close(hang)
		time.AfterFunc(time.Hour, interrupt)
		begun := time.Now()
		err := perform(ctx, windUp, func() error { <-hang; return nil })
		var f *cli.Failure
		if !errors.As(err, &f) || f.Status != cli.ExitInterrupted {
			t.Errorf("got %v, want a failure with status %d", err, cli.ExitInterrupted)
		}
		if took := time.Since(begun); took != time.Hour+windUp {
			t.Errorf("ended after %v, want an hour and %v", took, windUp)
		}
	})
}

// What a verb says while it winds up is what counts.
func TestInterruptWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		kept := errors.New("kept what there was")
		err := perform(ctx, windUp, func() error {
			interrupt()
			time.Sleep(windUp - 1)
			return kept
		})
		if err != kept {
			t.Errorf("got %v, want %v", err, kept)
		}
	})
}

func TestPatience(t *testing.T) {
	heeds := map[string]bool{"run": true, "load": true, "gate": true, "env": true, "calibrate": true, "selftest": true}
	for _, args := range []string{"run x", "load x", "list", "report x", "compare x y", "gate x", "claims", "env", "calibrate", "selftest", "completion zsh", "version"} {
		var v verbs
		parser, err := newParser(context.Background(), &v, &cli.Terminal{Out: io.Discard, Err: io.Discard}, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.Parse(strings.Fields(args))
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		verb, _, _ := strings.Cut(args, " ")
		want := finish
		if heeds[verb] {
			want = windUp
		}
		if got := patience(parsed); got != want {
			t.Errorf("%s: got %v, want %v", args, got, want)
		}
	}
}

// A name that is being looked up is no reason to say that the command could not.
func TestInterruptedLookUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"load", "-q", "http://nobody.invalid/"}, {"load", "-q", "--find-max", "p99<1s", "http://nobody.invalid/"}} {
		var out, errs bytes.Buffer
		if got := run(ctx, args, &cli.Terminal{Out: &out, Err: &errs, Width: 80}); got != cli.ExitInterrupted {
			t.Errorf("tare %q: got exit status %d and %q, want %d", args, got, errs.String(), cli.ExitInterrupted)
		}
	}
}

// Nor is it one that a load beside a measurement was not under way yet.
func TestInterruptedBeforeLoad(t *testing.T) {
	for _, last := range []int64{1, 3} { // the request by which it is tried, and one of the warm-up
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		var seen atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if seen.Add(1) == last {
				interrupt()
			}
		}))
		defer s.Close()
		var out, errs bytes.Buffer
		got := run(ctx, []string{"cost", "--for", "1s", "--load", s.URL, s.URL}, &cli.Terminal{Out: &out, Err: &errs, Piped: true})
		if got != cli.ExitInterrupted {
			t.Errorf("interrupted at request %d: got exit status %d and %q, want %d", last, got, errs.String(), cli.ExitInterrupted)
		}
	}
}

// A password in the URL of a load is not shown, though it cannot be sent.
func TestLoadWithPassword(t *testing.T) {
	status, _, said := tare(t, "cost", "--load", "http://me:secret@localhost:1/", "localhost:1")
	if status == 0 || strings.Contains(said, "secret") {
		t.Errorf("got exit status %d and %q, want an error without the password", status, said)
	}
}

// One interruption may come as two signals, as from timeout(1): what was measured is
// shown all the same.
func TestInterruptedByTwoSignals(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			t.Logf("%v is ignored here, as under nohup", sig)
			continue
		}
		status, out := signalled(t, sig, "tare", "load", "-d", "1h", "-c", "1")
		if status != cli.ExitInterrupted || !strings.Contains(out, "ended early: interrupted") {
			t.Errorf("%v: got exit status %d and %q, want %d and what was measured", sig, status, out, cli.ExitInterrupted)
		}
	}
}

// What is not to hear a hang-up does not.
func TestHangUpIgnored(t *testing.T) {
	status, out := signalled(t, syscall.SIGHUP, "nohup", "tare", "load", "-d", "2s", "-c", "1")
	if status != 0 || strings.Contains(out, "interrupted") {
		t.Errorf("got exit status %d and %q, want 0 and what was measured in two seconds", status, out)
	}
}

// signalled runs a command that loads a slow server, sends it a signal twice when it
// first says something, and returns how it ended and what it printed.
func signalled(t *testing.T, sig os.Signal, command ...string) (status int, out string) {
	t.Helper()
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(300 * time.Millisecond) }))
	defer slow.Close()
	cmd := exec.Command(command[0], append(command[1:], slow.URL)...)
	var printed strings.Builder
	cmd.Stdout = &printed
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer giveUp.Stop()
	lines := bufio.NewScanner(said)
	for lines.Scan() && strings.HasPrefix(lines.Text(), "nohup:") {
		// of its input and output
	}
	for range 2 {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := io.Copy(io.Discard, said); err != nil {
		t.Fatal(err)
	}
	return exitStatus(cmd.Wait()), printed.String()
}
