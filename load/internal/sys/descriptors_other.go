//go:build !linux

package sys

// ReserveDescriptors does nothing: whether it helps is known of Linux only.
func ReserveDescriptors(int) {}
