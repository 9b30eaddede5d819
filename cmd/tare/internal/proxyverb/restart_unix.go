//go:build unix

package proxyverb

import (
	"os"
	"syscall"
)

// restartSignals are those upon which another process takes the proxy's place.
func restartSignals() []os.Signal { return []os.Signal{syscall.SIGUSR2} }
