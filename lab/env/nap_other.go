//go:build !linux

package env

import "time"

func nap(d time.Duration) time.Duration {
	start := time.Now()
	time.Sleep(d)
	return time.Since(start)
}
