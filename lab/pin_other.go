//go:build !linux

package lab

// usableCPUs is one: where the system cannot pin a process, nothing can be kept
// apart.
func usableCPUs() []int { return []int{0} }
