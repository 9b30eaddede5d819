// Package arm builds, starts, watches and stops the programs under
// comparison.
//
// An arm is a process started afresh for every trial, in any language. tare
// gives it TARE_ADDR (host:port to listen on) and TARE_CONTROL (the path of a
// Unix socket; only Go arms built on arms/arm answer there). It is ready at
// its first correct answer. What the kernel tells (CPU, memory, faults,
// switches, sockets) is read for every program; runtime metrics, profiles and
// the in-process loop come over the control socket. docs/arm.md states the
// contract for those who write an arm.
//
// Nothing survives tare. An arm is in a process group of its own; [Process.Stop]
// ends the group and what descends from the arm, and when tare dies without a word
// the kernel kills the arm and a guard, a shell that sleeps beside it, the group.
// What leaves the group and loses its parent on purpose (a daemon that starts a
// session of its own) is beyond that promise; so is, when tare dies without a word,
// what leaves the group.
//
// Starting arms needs a Unix system; what the kernel tells of them and pinning
// to CPUs, Linux. Elsewhere the calls answer [ErrNotSupported].
package arm

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/tarehq/tare/lab/study"
)

// ErrNotSupported is wrapped by errors that say what this system lacks.
var ErrNotSupported = errors.New("not supported on this system")

// ErrNotInstalled is wrapped by errors about a program that is not there.
var ErrNotInstalled = errors.New("not installed")

// ErrNoCache is wrapped by the errors of a [Builder] that may not keep executables
// where its cache is, or finds no place for one.
var ErrNoCache = errors.New("no place for built arms")

// ErrNoDirectory is returned where an arm's package is a folder that is not there.
// Such folders are named from the one in which the building program was started.
var ErrNoDirectory = errors.New("no such directory, from where tare was started")

// ErrNoControl is returned where an arm does not answer on the control socket.
var ErrNoControl = errors.New("the arm does not answer on TARE_CONTROL")

// ErrDeclined is wrapped by the errors with which an arm itself answers a question:
// most often it is one that it does not know.
var ErrDeclined = errors.New("the arm declines")

// Program is something that can be started.
type Program struct {
	Path    string            // executable; "" for an arm that is only a URL
	Args    []string          // without the program itself; see StartOptions for what is expanded
	Under   []string          // command that runs Path, to which it and Args are given; nil = Path is run itself
	Dir     string            // working directory; "" = an empty temporary one
	Env     []string          // added to the environment
	URL     string            // set when the arm is already running
	BuildID string            // SHA-256 of the executable, which Go builds reproducibly; "" for a URL
	Go      string            // toolchain version; "" = not a Go program
	Modules map[string]string // versions of the modules built in
	Sink    string            // as in study.Arm, or SinkErrors
	Service study.Service     // as in study.Arm, but for Dir, which is above

	file os.FileInfo // of Path when it was identified; nil: it was not
}

// SinkErrors has standard output go where standard error does, which messages quote.
const SinkErrors = "errors"

// StartOptions say how a program is started. In its arguments and settings ${TARE_ADDR},
// ${TARE_HOST}, ${TARE_PORT}, ${TARE_CONTROL} and ${TARE_DIR}, a temporary directory of
// the trial, are expanded. They are in its environment, too.
type StartOptions struct {
	Addr string // host:port; "" = a free port of Host
	Host string // "" = 127.0.0.1
	CPUs []int  // CPUs it may use, set before it starts, and GOMAXPROCS is their number; nil = all
	// Dir is a temporary working directory, "" = the program's. The caller makes and
	// removes it; if the caller dies first it goes with the arm.
	Dir    string
	Output int // bytes of standard error kept for messages; 0 = 64 KiB
	// Grace is how long Stop waits for the arm to end before it kills it; 0 = a second.
	Grace time.Duration
	// Stdout is where standard output goes, nil = where the program's sink says;
	// Stderr is where standard error goes besides. Each is written to from a
	// goroutine of its own until the arm is stopped.
	Stdout, Stderr io.Writer
}

// Ending is how a program ended that was left to run to its end.
type Ending struct {
	Err     error         // nil: with status 0; else with what it wrote to standard error
	Elapsed time.Duration // from the fork
	CPU     time.Duration // user and system, of the process and of the children it waited for
	PeakRSS uint64        // bytes, of the process and its children; 0 if the system does not report it
}

// Usage is what the kernel says of a process and its descendants.
type Usage struct {
	CPU          time.Duration // user and system since the start, of threads that ended, too
	RSS, PeakRSS uint64        // bytes; peak since the start; pages shared between processes count in each
	PSS          uint64        // bytes; 0 unless asked for
	MinorFaults  uint64
	MajorFaults  uint64
	Voluntary    uint64 // context switches, of the threads that are left: the kernel tells of no others
	Involuntary  uint64
	Threads      int
	Processes    int
}

// Sockets counts TCP sockets by state.
type Sockets map[string]int // "ESTABLISHED", "TIME_WAIT", …

// LoopRequest is one request of the in-process loop.
type LoopRequest struct {
	Method string            `json:"method"`
	Target string            `json:"target"` // path and query
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
}

// LoopResult is what the in-process loop measured.
type LoopResult struct {
	N      uint64  `json:"n"`      // requests
	NS     float64 `json:"ns"`     // a request
	Bytes  float64 `json:"bytes"`  // allocated a request
	Allocs float64 `json:"allocs"` // objects a request
	// Answers are the status and body digest of each request's first answer,
	// so that the loop is verified like the load.
	Answers []LoopAnswer `json:"answers"`
}

// LoopAnswer is the first answer to one request of the loop.
type LoopAnswer struct {
	Status int    `json:"status"`
	SHA256 string `json:"sha256"`
	Length int64  `json:"length"`
}
