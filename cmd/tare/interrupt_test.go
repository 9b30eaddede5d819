package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
			got := run(ctx, strings.Fields(args), &terminal{out: w, err: &said, width: 80})
			if got != exitInterrupted || !strings.Contains(said.String(), "interrupted") {
				t.Errorf("got exit status %d and %q, want %d and that it was interrupted", got, said.String(), exitInterrupted)
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
		var f *failure
		if !errors.As(err, &f) || f.status != exitInterrupted {
			t.Errorf("got %v, want a failure with status %d", err, exitInterrupted)
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
		parser, err := newParser(context.Background(), &v, &terminal{out: io.Discard, err: io.Discard}, func(int) {})
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
		if got := run(ctx, args, &terminal{out: &out, err: &errs, width: 80}); got != exitInterrupted {
			t.Errorf("tare %q: got exit status %d and %q, want %d", args, got, errs.String(), exitInterrupted)
		}
	}
}
