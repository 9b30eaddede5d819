//go:build !unix

package upstreams

import (
	"os"
	"syscall"
)

func apart() *syscall.SysProcAttr { return nil }

func lives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err == nil {
		_ = p.Release()
	}
	return err == nil
}
