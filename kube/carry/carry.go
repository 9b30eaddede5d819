// Package carry is what runs in the pods: it starts tare there, keeps what it came to, and
// hands that over.
//
// A coordinator's pod has two containers, one after the other. Run is the first: it ends
// once there is an outcome, whatever it is. Offer is the second: that it has begun shows that
// the outcome is there. Agent is what runs in the pods that make loads.
//
// All take certificates and files from a Secret that is mounted as a folder. Its files may be
// read by all users of the pod, which tare refuses of keys, so they are copied first.
package carry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/tarehq/tare/kube/parcel"
)

// Keys of the Secret beside those of the certificates.
const (
	FilesKey   = "files.json"   // files for the working folder: parcel.Files as JSON
	CommandKey = "command.json" // tare's command line from its verb on, which may hold passwords: a list as JSON
)

const (
	agentsWithin = 5 * time.Minute  // from the coordinator's beginning until all agents answer
	endWithin    = 20 * time.Second // a program that was told to end
)

// Options say where things are in a coordinator's pod. All are required but the last three.
type Options struct {
	Secret string        // folder of the Secret
	Certs  string        // folder to make, with copies of the certificates
	Work   string        // working folder
	Keep   string        // file for the outcome
	Within time.Duration // after which the program is interrupted

	Folders []string // to make in the working folder
	Agents  []string // host:port of agents that make the load
	ArmOn   string   // with Agents: address of this pod that arms listen on
}

// Run runs a program with the command line of the Secret, in the working folder, once all
// agents answer. It keeps the outcome. What the program says on standard error goes to log,
// too. An error means that there is no outcome: that the program failed is one.
func Run(ctx context.Context, o Options, program []string, log io.Writer) error {
	known, command, err := prepare(o)
	if err != nil {
		return err
	}
	out := &outcome{log: log}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Within, fmt.Errorf("the deadline of %v is over", o.Within))
	defer cancel()
	if err := awaitAgents(ctx, o.Agents); err != nil {
		fmt.Fprintf(out.stderr(), "tare: %v\n", err)
		out.status = 1
	} else {
		out.run(ctx, o.Work, append(slices.Clone(program), command...))
	}
	if ctx.Err() != nil {
		fmt.Fprintf(out.stderr(), "tare: ended early: %v\n", context.Cause(ctx))
	}
	return out.keep(o, known)
}

// prepare copies certificates and files to where the program finds them, and returns the
// files and the command line.
func prepare(o Options) (files parcel.Files, command []string, err error) {
	if err := CopyCerts(o.Secret, o.Certs); err != nil {
		return nil, nil, err
	}
	for key, into := range map[string]any{FilesKey: &files, CommandKey: &command} {
		text, err := os.ReadFile(filepath.Join(o.Secret, key))
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading what to do: %w", err)
		}
	}
	if len(command) == 0 {
		return nil, nil, errors.New("reading what to do: the command line is empty")
	}
	for _, folder := range o.Folders {
		if err := os.MkdirAll(filepath.Join(o.Work, filepath.FromSlash(folder)), 0o755); err != nil {
			return nil, nil, fmt.Errorf("making a folder: %w", err)
		}
	}
	if len(o.Agents) > 0 {
		on := []string{"--certs=" + o.Certs}
		for _, a := range o.Agents { // Linux bounds an argument, and a thousand names are longer
			on = append(on, "--on="+a)
		}
		if o.ArmOn != "" {
			on = append(on, "--arm-on="+o.ArmOn)
		}
		command = slices.Insert(command, 1, on...)
	}
	return files, command, files.Unpack(o.Work)
}

// CopyCerts copies certificates and keys into a new folder, where only their owner can
// read them.
func CopyCerts(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("copying certificates: %w", err)
	}
	for _, pattern := range []string{"*.pem", "*.key"} {
		found, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			return fmt.Errorf("copying certificates: %w", err)
		}
		for _, path := range found {
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600)
			}
			if err != nil {
				return fmt.Errorf("copying certificates: %w", err)
			}
		}
	}
	return nil
}

// awaitAgents waits until all agents accept connections.
func awaitAgents(ctx context.Context, agents []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, agentsWithin, fmt.Errorf("no answer within %v", agentsWithin))
	defer cancel()
	for _, a := range agents {
		err := retry(ctx, func() error {
			conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", a)
			if err != nil {
				return err
			}
			return conn.Close()
		})
		if err != nil {
			return fmt.Errorf("waiting for agent %s: %w", a, err)
		}
	}
	return nil
}

// retry does something until it succeeds or ctx ends; the error is then its last, and why.
func retry(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// outcome is what becomes of a program.
type outcome struct {
	log    io.Writer
	status int
	out    head
	errs   tail
}

func (o *outcome) stderr() io.Writer { return io.MultiWriter(&o.errs, o.log) }

// run runs the program until it ends. When ctx ends it is interrupted.
func (o *outcome) run(ctx context.Context, dir string, argv []string) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &o.out, o.stderr()
	interruptOnCancel(cmd)
	err := cmd.Run()
	if o.status = cmd.ProcessState.ExitCode(); o.status <= 0 && err != nil { // it did not start, or a signal ended it
		o.status = 1
		fmt.Fprintf(o.stderr(), "tare: running %s: %v\n", argv[0], err)
	}
}

func interruptOnCancel(cmd *exec.Cmd) {
	cmd.Cancel = func() error {
		if runtime.GOOS == "windows" {
			return cmd.Process.Kill()
		}
		return cmd.Process.Signal(os.Interrupt)
	}
	cmd.WaitDelay = endWithin
}

// keep puts the outcome into its file, whole or not at all.
func (o *outcome) keep(at Options, known parcel.Files) error {
	files, left, err := parcel.Pack(at.Work, known, parcel.MostFiles)
	if err != nil {
		return err
	}
	if o.out.cut {
		left = append(left, "standard output")
	}
	f, err := os.OpenFile(at.Keep+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("keeping the outcome: %w", err)
	}
	p := &parcel.Outcome{Status: o.status, Output: o.out.kept, Errors: o.errs.end(), Files: files, LeftOut: left}
	if err := errors.Join(p.Write(f), f.Close()); err != nil {
		return fmt.Errorf("keeping the outcome: %w", err)
	}
	return os.Rename(f.Name(), at.Keep)
}

// head keeps the beginning of what is written to it.
type head struct {
	kept []byte
	cut  bool
}

func (h *head) Write(p []byte) (int, error) {
	fits := min(len(p), parcel.MostOutput-len(h.kept))
	h.kept = append(h.kept, p[:fits]...)
	h.cut = h.cut || fits < len(p)
	return len(p), nil
}

// tail keeps the end.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*parcel.MostErrors {
		t.kept = append([]byte(nil), t.end()...)
	}
	return len(p), nil
}

func (t *tail) end() []byte { return t.kept[max(0, len(t.kept)-parcel.MostErrors):] }
