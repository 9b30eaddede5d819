package proxyverb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// reply is what the proxy's program says of a file.
type reply struct {
	Problems  []problem `json:"problems"`
	Listening []string  `json:"listening"`
	Admin     string    `json:"admin"`
	Regions   []located `json:"regions"`
}

// located is the region of an address; empty: none is known.
type located struct {
	Address string `json:"address"`
	Region  string `json:"region"`
}

// problem is one thing wrong in a file, by its path.
type problem struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// examine has the program look at a file, and serve nothing.
func examine(ctx context.Context, program string, file []byte, args ...string) (reply, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(file), &complaints
	var r reply
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("checking the file: %w: %s", err, bytes.TrimSpace(complaints.Bytes()))
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("reading the proxy's reply: %w", err)
	}
	return r, nil
}

// gateway is the proxy while it runs.
type gateway struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies *json.Decoder
	ended   chan struct{}
	err     error // once it has ended
	ending  sync.Once
	admin   string // its socket; empty: none
}

// start runs the program. What it complains of goes to stderr. It takes the sockets over of
// the proxy whose admin socket is named, or else those that the service manager gave tare.
func start(program string, stderr io.Writer, replaces string) (*gateway, error) {
	g := &gateway{cmd: exec.Command(program), ended: make(chan struct{})}
	g.cmd.Stderr = stderr
	if replaces != "" {
		g.cmd.Args = append(g.cmd.Args, "-replace", replaces)
	} else {
		passSockets(g.cmd)
	}
	in, err := g.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	g.in, g.replies = in, json.NewDecoder(out)
	go func() {
		// Not Wait, which closes the output that a reply may still be read from.
		state, err := g.cmd.Process.Wait()
		if err == nil && !state.Success() {
			err = fmt.Errorf("the proxy ended: %s", state)
		}
		g.err = err
		close(g.ended)
	}()
	return g, nil
}

// passSockets has a program get the sockets that the service manager opened for tare (see
// sd_listen_fds(3)), as if for itself.
func passSockets(cmd *exec.Cmd) {
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LISTEN_") })
	if err != nil || n < 1 || n > 250 || os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return
	}
	const first = 3
	for fd := first; fd < first+n; fd++ {
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), "socket"))
	}
	cmd.Env = append(cmd.Env, "LISTEN_FDS="+strconv.Itoa(n))
}

// take gives the program a file.
func (g *gateway) take(file []byte) (reply, error) {
	var r reply
	if _, err := g.in.Write(append(file, '\n')); err != nil {
		return r, fmt.Errorf("giving the file to the proxy: %w", err)
	}
	if err := g.replies.Decode(&r); err != nil {
		return r, fmt.Errorf("reading the proxy's reply: %w", err)
	}
	if len(r.Problems) == 0 {
		g.admin = r.Admin
	}
	return r, nil
}

// over reports whether the program has ended.
func (g *gateway) over() bool {
	select {
	case <-g.ended:
		return true
	default:
		return false
	}
}

// patience is how long the program may take to end: less than tare itself has.
const patience = 18 * time.Second

// end ends the program once it has answered what it has begun, and returns how it ended.
func (g *gateway) end() error {
	g.ending.Do(func() {
		g.in.Close()
		late := time.AfterFunc(patience, func() { _ = g.cmd.Process.Kill() })
		<-g.ended
		late.Stop()
	})
	return g.err
}
