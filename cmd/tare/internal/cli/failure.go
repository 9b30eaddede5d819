package cli

import "fmt"

// Exit statuses.
const (
	ExitFailed       = 1
	ExitUsage        = 2
	ExitThreshold    = 3
	ExitInconclusive = 4
	ExitNotOffered   = 5
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
