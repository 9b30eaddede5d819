//go:build !linux || 386 || s390x

package sys

import "syscall"

// Acked is not to be had here: it needs tcp_info(7) of Linux 4.1.
func Acked(uintptr) (uint64, error) { return 0, syscall.ENOSYS }

// Moved is not to be had here, for the same reason.
func Moved(uintptr) (uint64, error) { return 0, syscall.ENOSYS }

// Unacked is not asked for where the others are not to be had.
func Unacked(uintptr) (int, error) { return 0, syscall.ENOSYS }

// Backlog is not to be had here, for the same reason.
func Backlog(uintptr) (int, error) { return 0, syscall.ENOSYS }
