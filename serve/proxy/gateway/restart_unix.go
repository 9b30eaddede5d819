//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// restartSignal is told to start the program again.
func restartSignal() <-chan os.Signal {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR2)
	return told
}
