//go:build !linux

package lab

import (
	"runtime"

	"github.com/tarehq/tare/lab/arm"
)

// usableCPUs are numbered as if this process may run on all: the system does
// not tell.
func usableCPUs() []int {
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus[:1]
}

func setAffinity([]int) error { return arm.ErrNotSupported }
