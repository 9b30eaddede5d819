//go:build !linux

package sys

import "time"

// PreciseSleep returns how to sleep.
func PreciseSleep() func(time.Duration) { return time.Sleep }
