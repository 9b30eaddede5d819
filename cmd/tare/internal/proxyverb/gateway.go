package proxyverb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// reply is what the proxy's program says of a file.
type reply struct {
	Problems  []problem `json:"problems"`
	Listening []string  `json:"listening"`
	Admin     string    `json:"admin"`
}

// problem is one thing wrong in a file, by its path.
type problem struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// examine has the program check a file.
func examine(ctx context.Context, program string, file []byte) ([]problem, error) {
	cmd := exec.CommandContext(ctx, program, "-check")
	var complaints bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(file), &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("checking the file: %w: %s", err, bytes.TrimSpace(complaints.Bytes()))
	}
	var r reply
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("reading the proxy's reply: %w", err)
	}
	return r.Problems, nil
}

// gateway is the proxy while it runs.
type gateway struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies *json.Decoder
	ended   chan struct{}
	err     error // once it has ended
	ending  sync.Once
}

// start runs the program. What it complains of goes to stderr.
func start(program string, stderr io.Writer) (*gateway, error) {
	g := &gateway{cmd: exec.Command(program), ended: make(chan struct{})}
	g.cmd.Stderr = stderr
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

// take gives the program a file.
func (g *gateway) take(file []byte) (reply, error) {
	var r reply
	if _, err := g.in.Write(append(file, '\n')); err != nil {
		return r, fmt.Errorf("giving the file to the proxy: %w", err)
	}
	if err := g.replies.Decode(&r); err != nil {
		return r, fmt.Errorf("reading the proxy's reply: %w", err)
	}
	return r, nil
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
