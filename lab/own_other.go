//go:build !unix

package lab

import "time"

// ownCPU is the CPU time of this process; 0 if the system does not report it.
func ownCPU() time.Duration { return 0 }
