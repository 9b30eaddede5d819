// Package cli connects verbs to the terminal: flags, output, failures and files.
//
// A verb is a struct with flags as fields and a method Run that is given a *Terminal.
// It writes its result to Terminal.Out, all else to Terminal.Err, and returns an error.
// A *Failure among that error's causes sets the exit status and adds a hint.
package cli
