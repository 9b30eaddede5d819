//go:build !linux

package load

import "time"

// preciseSleep returns how to sleep.
func preciseSleep() func(time.Duration) { return time.Sleep }
