//go:build !unix

package lab

import "time"

// ownCPU is the CPU time of this process; 0 where the system does not tell.
func ownCPU() time.Duration { return 0 }
