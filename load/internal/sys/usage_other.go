//go:build !unix && !windows

package sys

import (
	"math"
	"time"
)

// CPUTime is what this process has used, user and system; 0 where the system
// does not tell.
func CPUTime() time.Duration { return 0 }

// MaxRSS is this process's largest resident set so far, in bytes; 0 where the
// system does not tell.
func MaxRSS() uint64 { return 0 }

// DescriptorLimit is how many files and sockets this process may have open.
func DescriptorLimit() uint64 { return math.MaxUint64 }
