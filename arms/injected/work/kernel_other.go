//go:build !linux

package work

import (
	"os"
	"time"
)

func threadCPU() time.Duration { return 0 }

func thread() int { return 0 }

func pipe() (r, w *os.File, err error) { return os.Pipe() }

func sleep(d time.Duration) { time.Sleep(d) }
