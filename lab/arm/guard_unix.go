//go:build unix

package arm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// guardScript sleeps until its standard input ends, which only tare holds open,
// removes the temporary directories, and kills its process group, itself
// included.
const guardScript = `trap '' TERM INT HUP QUIT; read _; rm -rf -- "$@"; kill -KILL 0`

// guard is a shell that leads the process group in which an arm, or its build, runs. A
// parent-death signal reaches the arm alone; the guard is there for its
// children, which would keep the port. It costs a fork a trial and nothing
// meanwhile.
//
// As the group's leader it also keeps the group's ID from being used again
// before end has reaped it.
type guard struct {
	cmd  *exec.Cmd
	life *os.File // its other end is the guard's standard input
}

// startGuard starts the guard of what has these temporary directories.
func startGuard(dirs ...string) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	g := &guard{cmd: exec.Command("/bin/sh", append([]string{"-c", guardScript, "guard"}, dirs...)...), life: w}
	g.cmd.Dir, g.cmd.Stdin = "/", r
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := g.cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("starting its guard: %w", err)
	}
	return g, nil
}

// adopt makes the command start in the guard's group.
func (g *guard) adopt(cmd *exec.Cmd) { cmd.SysProcAttr = childAttr(g.cmd.Process.Pid) }

// kill ends every process of the group at once.
func (g *guard) kill() error {
	if err := syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing process group %d: %w", g.cmd.Process.Pid, err)
	}
	return nil
}

// end kills what is left of the group and waits until all of it is gone.
func (g *guard) end() error {
	err := g.kill()
	g.life.Close()
	_ = g.cmd.Wait() // reaps; that it was killed is no news
	for deadline := time.Now().Add(reap); err == nil && groupLives(g.cmd.Process.Pid); {
		if time.Now().After(deadline) {
			err = fmt.Errorf("process group %d does not end, although killed", g.cmd.Process.Pid)
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
