//go:build !unix

package arm

import (
	"fmt"
	"os"
	"os/exec"
)

// guard is what keeps an arm's process group together on Unix.
type guard struct{}

func startGuard(...string) (*guard, error) {
	return nil, fmt.Errorf("starting arms needs process groups as Unix systems have them: %w", ErrNotSupported)
}

func (*guard) adopt(*exec.Cmd) {}
func (*guard) kill() error     { return nil }
func (*guard) end() error      { return nil }

func terminate(p *os.Process) error { return p.Kill() }
