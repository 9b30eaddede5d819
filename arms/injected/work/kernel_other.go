//go:build !linux

package work

import (
	"os"
	"time"
)

func thread() usage { return usage{} }

func pipe() (r, w *os.File, err error) { return os.Pipe() }

func sleep(d time.Duration) { time.Sleep(d) }
