//go:build !linux

package work

import (
	"os"
	"time"
)

func threadCPU() (time.Duration, bool) { return 0, false }

func pipe() (r, w *os.File, err error) { return os.Pipe() }

func sharpen() {}

func sleep(d time.Duration) { time.Sleep(d) }
