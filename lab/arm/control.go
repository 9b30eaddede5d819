package arm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"time"
)

const (
	maxReply   = 16 << 20  // bytes of one line from an arm
	maxProfile = 512 << 20 // bytes of a profile or trace

	// patience is how long an arm may take to answer, besides the time that it is
	// asked for: one that hangs must not hang the run.
	patience = time.Minute
)

// question is one line to an arm, as docs/arm.md describes it.
type question struct {
	Do       string        `json:"do"`
	For      time.Duration `json:"for_ns,omitempty"`
	Rate     int           `json:"rate,omitempty"`
	Requests []LoopRequest `json:"requests,omitempty"`
}

type reply struct {
	Metrics map[string]float64 `json:"metrics"`
	Loop    *LoopResult        `json:"loop"`
	Facts   map[string]string  `json:"facts"`
	Bytes   int64              `json:"bytes"`
	Error   string             `json:"error"`
}

// Metrics returns the arm's runtime/metrics by name; of a histogram those with
// :p50, :p99 and :max appended, over the life of the process.
func (a *Process) Metrics(ctx context.Context) (map[string]float64, error) {
	r, _, err := a.ask(ctx, question{Do: "metrics"})
	return r.Metrics, err
}

// Facts returns what the arm reports of itself.
func (a *Process) Facts(ctx context.Context) (map[string]string, error) {
	r, _, err := a.ask(ctx, question{Do: "facts"})
	return r.Facts, err
}

// Loop has the arm answer the requests in turn, in its own process and without
// a network, for about d (at most 60 s).
func (a *Process) Loop(ctx context.Context, d time.Duration, reqs []LoopRequest) (*LoopResult, error) {
	r, _, err := a.ask(ctx, question{Do: "loop", For: d, Requests: reqs})
	if err != nil {
		return nil, err
	}
	if r.Loop == nil || len(r.Loop.Answers) != len(reqs) {
		return nil, errors.New("asking the arm for loop: it did not answer every request")
	}
	return r.Loop, nil
}

// Profile returns a profile in pprof's form: "heap" or "goroutines" as of now,
// "cpu" over d (at most 60 s), or an execution trace, "trace", over d.
func (a *Process) Profile(ctx context.Context, kind string, d time.Duration) ([]byte, error) {
	_, raw, err := a.ask(ctx, question{Do: kind, For: d})
	return raw, err
}

// CPUProfile returns a CPU profile over d (at most 60 s) with rate samples a
// second of CPU time (at most 500), or as many as the arm's system has ticks.
func (a *Process) CPUProfile(ctx context.Context, d time.Duration, rate int) ([]byte, error) {
	_, raw, err := a.ask(ctx, question{Do: "cpu", For: d, Rate: rate})
	return raw, err
}

// GC has the arm collect its garbage.
func (a *Process) GC(ctx context.Context) error {
	_, _, err := a.ask(ctx, question{Do: "gc"})
	return err
}

// ask sends one question on a connection of its own.
func (a *Process) ask(ctx context.Context, q question) (reply, []byte, error) {
	if a.control == "" {
		return reply{}, nil, ErrNoControl
	}
	within := q.For + a.patience
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %v", within))
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", a.control)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return reply{}, nil, ErrNoControl
	}
	if err != nil {
		return reply{}, nil, fmt.Errorf("asking the arm for %s: %w", q.Do, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	r, raw, err := converse(c, q)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return reply{}, nil, fmt.Errorf("asking the arm for %s: %w", q.Do, err)
	}
	return r, raw, nil
}

func converse(c net.Conn, q question) (r reply, raw []byte, err error) {
	if err := json.NewEncoder(c).Encode(q); err != nil {
		return r, nil, err
	}
	in := bufio.NewReader(c)
	line, err := readLine(in)
	if err != nil {
		return r, nil, err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, nil, fmt.Errorf("its answer is malformed: %w", err)
	}
	if r.Error != "" {
		return r, nil, declined(r.Error)
	}
	if r.Bytes < 0 || r.Bytes > maxProfile {
		return r, nil, fmt.Errorf("it announces %d bytes, more than %d", r.Bytes, maxProfile)
	}
	raw = make([]byte, r.Bytes)
	if _, err := io.ReadFull(in, raw); err != nil {
		return r, nil, err
	}
	return r, raw, nil
}

// declined is what an arm says instead of an answer.
type declined string

func (d declined) Error() string { return string(d) }

func (declined) Is(target error) bool { return target == ErrDeclined }

// readLine reads a line of bounded length.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxReply:
			return nil, fmt.Errorf("its answer is longer than %d bytes", maxReply)
		}
	}
}
