//go:build !unix

package arm

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
