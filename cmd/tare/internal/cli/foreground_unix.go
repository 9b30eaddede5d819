//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// Foreground reports whether a terminal takes drawings and keys of this process. It stops
// a job that the shell runs in the background when that changes its mode or reads from it.
func Foreground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // an error: it is not the terminal of a shell's jobs
}
