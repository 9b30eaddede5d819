//go:build unix

package sys

import (
	"os"
	"os/signal"
	"syscall"
)

// Continued tells on a channel that this process goes on after it was stopped, as
// by Ctrl-Z. Once release has returned, all that there was to tell was told.
func Continued() (told <-chan os.Signal, release func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCONT)
	return c, func() { signal.Stop(c) }
}
