package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tarehq/tare/doc"
)

// Exit statuses.
const (
	ExitFailed       = 1
	ExitUsage        = 2
	ExitThreshold    = 3
	ExitInconclusive = 4
	ExitNotOffered   = 5
	ExitEnded        = 6 // what was watched ended meanwhile
	ExitInterrupted  = 130
)

// Failure is an error with an exit status and, where there is one, a hint.
type Failure struct {
	Status int
	Hint   string
	Err    error // nil: the reason is already on the screen
}

// Usage is a mistake in how the command was called.
func Usage(hint string, err error) error { return &Failure{Status: ExitUsage, Hint: hint, Err: err} }

func (f *Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit status %d", f.Status)
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// PrintError prints an error and its hint, and returns the exit status.
func PrintError(t *Terminal, err error) int {
	if err == nil {
		return 0
	}
	status, hint := ExitFailed, ""
	var f *Failure
	if errors.As(err, &f) {
		status, hint = f.Status, f.Hint
	}
	if errors.Is(err, context.Canceled) {
		status = ExitInterrupted
	}
	if f == nil || f.Err != nil {
		t.printLines("tare: ", err.Error())
	}
	if hint != "" {
		t.printLines("tare: hint: ", hint)
	}
	return status
}

// printLines prints text behind a label on standard error, wrapped if that is a terminal.
func (t *Terminal) printLines(label, text string) {
	if t.Columns == 0 {
		fmt.Fprintf(t.Err, "%s%s\n", label, doc.Printable(text))
		return
	}
	for line := range strings.Lines(text) {
		Wrap(t.Err, label, line, t.Columns)
		label = strings.Repeat(" ", len(label))
	}
}
