package arm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
)

const (
	maxLine = 1 << 20          // bytes of one question
	maxFor  = 60 * time.Second // longest loop or profile
	maxRate = 500              // samples a second
)

// question is one line that tare sends.
type question struct {
	Do       string        `json:"do"`
	For      time.Duration `json:"for_ns"`
	Rate     int           `json:"rate"`
	Requests []LoopRequest `json:"requests"`
}

// reply is the line sent back. Bytes announces so many raw bytes after it.
type reply struct {
	Metrics map[string]float64 `json:"metrics,omitempty"`
	Loop    *loopResult        `json:"loop,omitempty"`
	Facts   map[string]string  `json:"facts,omitempty"`
	Bytes   int                `json:"bytes,omitempty"`
	Error   string             `json:"error,omitempty"`
}

// control answers questions about this process.
type control struct {
	options Options
	metrics *metricsReader
}

// serve accepts until the listener is closed, a goroutine a connection.
func (c *control) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: the load's own will be closed
			continue
		}
		go c.converse(conn)
	}
}

// converse answers a connection's questions one after another.
func (c *control) converse(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var raw []byte
		var q question
		r := reply{Error: "reading the question: "}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			r.Error += err.Error()
		} else {
			r, raw = c.answer(q)
		}
		if send(conn, r, raw) != nil {
			return
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		_ = send(conn, reply{Error: fmt.Sprintf("question longer than %d bytes", maxLine)}, nil) // the connection ends either way
	}
}

func send(conn net.Conn, r reply, raw []byte) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = (&net.Buffers{append(line, '\n'), raw}).WriteTo(conn)
	return err
}

// answer does what is asked and returns the reply and the raw bytes after it.
func (c *control) answer(q question) (reply, []byte) {
	var r reply
	var raw bytes.Buffer
	var err error
	switch q.Do {
	case "metrics":
		r.Metrics = c.metrics.read()
		if c.options.Metrics != nil {
			maps.Copy(r.Metrics, c.options.Metrics())
		}
	case "facts":
		r.Facts = c.facts()
	case "gc":
		// Twice, since pools are emptied by the second; and what is free goes
		// back, so that the kernel's figures tell what is held.
		runtime.GC()
		debug.FreeOSMemory()
	case "loop":
		if err = bounded(q.For); err == nil {
			r.Loop, err = runLoop(c.caller(), q.For, q.Requests)
		}
	case "heap", "goroutines":
		err = snapshot(&raw, q.Do)
	case "cpu":
		if err = errors.Join(bounded(q.For), possible(q.Rate)); err == nil {
			err = cpuProfile(&raw, q.For, q.Rate)
		}
	case "trace":
		if err = bounded(q.For); err == nil {
			err = executionTrace(&raw, q.For)
		}
	default:
		err = fmt.Errorf("unknown question %q: metrics, facts, gc, loop, heap, goroutines, cpu and trace are known", q.Do)
	}
	if err != nil {
		return reply{Error: err.Error()}, nil
	}
	r.Bytes = raw.Len()
	return r, raw.Bytes()
}

// bounded refuses times that would keep an arm busy for too long.
func bounded(d time.Duration) error {
	if d <= 0 || d > maxFor {
		return fmt.Errorf("for_ns is %d: want more than 0, at most %d", d, maxFor)
	}
	return nil
}

// possible refuses rates of samples that no system has, or that would say more of
// the profiler than of the arm.
func possible(rate int) error {
	if rate < 0 || rate > maxRate {
		return fmt.Errorf("rate is %d: want 0 for the usual one, or at most %d", rate, maxRate)
	}
	return nil
}

func (c *control) facts() map[string]string {
	facts := map[string]string{
		"go":         runtime.Version(),
		"GOMAXPROCS": strconv.Itoa(runtime.GOMAXPROCS(0)),
	}
	if c.options.Facts != nil {
		maps.Copy(facts, c.options.Facts())
	}
	return facts
}

// caller is how the in-process loop prepares a request; nil if the arm has
// neither a loop of its own nor a handler.
func (c *control) caller() func(LoopRequest) func() Answer {
	if c.options.Loop == nil && c.options.Handler != nil {
		return handlerLoop(c.options.Handler, c.options.Context)
	}
	return c.options.Loop
}
