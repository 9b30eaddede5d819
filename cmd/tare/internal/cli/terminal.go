package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/tarehq/tare/doc"
)

// Terminal is where a verb reads and writes.
type Terminal struct {
	Out, Err io.Writer
	Live     bool // standard error is a terminal, with this process in the foreground: progress may be drawn
	Colour   bool // standard output is a terminal and NO_COLOR is unset
	Width    int  // of standard output, in columns
	Piped    bool // standard output is not a terminal
	Columns  int  // of standard error; 0: it is not a terminal

	Screen *os.File // standard output where a pager may show it; nil: print at once
	Lines  int      // of Screen

	Line  []string        // the command line, from the verb on
	Given map[string]bool // its flags
}

// PageLayout lays a page out for standard output. In a pipe no line is broken or cut.
func (t *Terminal) PageLayout() doc.TextOptions {
	if t.Piped {
		return doc.TextOptions{}
	}
	return doc.TextOptions{Width: t.Width, Color: t.Colour}
}

// WriteJSON writes v as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// Columns is the width of a terminal, or 80 where there is none.
func Columns(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// RefuseFlags refuses, if is holds, the flags that have no effect then. The value of a
// flag with a default does not show whether the user gave it.
func (t *Terminal) RefuseFlags(is bool, why string, flags ...string) error {
	for _, name := range flags {
		if is && t.Given[name] {
			return Usage("leave it out", fmt.Errorf("--%s does nothing %s", name, why))
		}
	}
	return nil
}

// Note writes to standard error what the command is about to do.
func (t *Terminal) Note(format string, args ...any) { t.printLines("", fmt.Sprintf(format, args...)) }

// NoteLine is Note for a line as it is.
func (t *Terminal) NoteLine(line string) { t.Note("%s", line) }

// Result is what a verb found, for programs and for people.
type Result struct {
	JSON any
	Page doc.Page
}

// Show prints a result, also where its files are unwritten for a reason, which it returns.
// If the user interrupted what led to it, of which a warning in it says so, the exit status
// says so too.
func (t *Terminal) Show(ctx context.Context, r Result, asJSON bool, unwritten error) error {
	var shown error
	if asJSON {
		shown = t.JSON(r.JSON)
	} else {
		shown = doc.Text(t.Out, r.Page, t.PageLayout())
	}
	err := errors.Join(unwritten, shown)
	if err == nil && ctx.Err() != nil {
		return &Failure{Status: ExitInterrupted}
	}
	return err
}

// JSON prints v on standard output.
func (t *Terminal) JSON(v any) error { return WriteJSON(t.Out, v) }
