//go:build unix

package main

import "syscall"

// ownSession has a process outlive its parent's group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// keepListener keeps what tare may have opened for this process from its children, which
// would hold the port.
func keepListener() { syscall.CloseOnExec(3) }
