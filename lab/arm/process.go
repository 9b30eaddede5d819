package arm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a started arm, or one that was running already (a URL). It is
// safe for concurrent use.
type Process struct {
	url      string // base of requests
	addr     string
	listen   string        // where it listens, as in study.Service
	after    string        // shell command to run once it has ended
	control  string        // path of the control socket; "" for a URL
	patience time.Duration // with an answer there, beyond what it is asked to take
	dir      string        // temporary, removed by Stop; "" for a URL
	expand   *strings.Replacer

	cmd     *exec.Cmd // nil for a URL
	guard   *guard
	began   time.Time // just before the fork
	exited  chan struct{}
	err     error // of the exit; read after exited is closed
	pumps   []*pump
	errTail tail

	grace   time.Duration // between asking it to end and killing it
	stop    sync.Once
	stopErr error
	killed  atomic.Bool // it did not end within that
}

// Start starts the program; ctx bounds the starting only. The caller must call Stop. A program
// that is a URL is not started, only given the methods that need no process.
func Start(ctx context.Context, p Program, o StartOptions) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.URL != "" {
		return attach(p.URL)
	}
	a := &Process{addr: o.Addr, patience: patience, grace: cmp.Or(o.Grace, grace), exited: make(chan struct{})}
	a.errTail.max = cmp.Or(o.Output, 64<<10)
	if err := a.start(ctx, p, o); err != nil {
		a.release()
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(p.Path), err)
	}
	return a, nil
}

// attach makes a process of something that runs already.
func attach(base string) (*Process, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("reading the arm's URL: %w", err)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), map[bool]string{false: "80", true: "443"}[u.Scheme == "https"])
	}
	return &Process{url: base, addr: addr, began: time.Now(), exited: make(chan struct{})}, nil
}

func (a *Process) start(ctx context.Context, p Program, o StartOptions) (err error) {
	if err := p.same(); err != nil {
		return err
	}
	if a.addr == "" {
		if a.addr, err = freeAddr(cmp.Or(o.Host, "127.0.0.1")); err != nil {
			return err
		}
	}
	a.url = "http://" + a.addr
	if a.dir, err = os.MkdirTemp("", "tare-"); err != nil {
		return err
	}
	a.control = filepath.Join(a.dir, "control")
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(a.control) > most {
		return fmt.Errorf("its control socket %s would have a path of %d bytes, more than %d: set TMPDIR to a folder with a shorter one", a.control, len(a.control), most)
	}
	temporary := []string{a.dir}
	if o.Dir != "" {
		temporary = append(temporary, o.Dir)
	}
	if a.guard, err = startGuard(temporary...); err != nil {
		return err
	}
	if err := a.prepare(p, o); err != nil {
		return err
	}
	a.listen, a.after = p.Service.Listen, p.Service.After
	if err := a.runCommand(ctx, p.Service.Before); err != nil {
		return err
	}
	err = a.launch(o.CPUs)
	for _, p := range a.pumps {
		p.w.Close() // the arm has its own
	}
	return err
}

// prepare fills in the command.
func (a *Process) prepare(p Program, o StartOptions) error {
	host, port, err := net.SplitHostPort(a.addr)
	if err != nil {
		return err
	}
	a.expand = strings.NewReplacer("${TARE_ADDR}", a.addr, "${TARE_HOST}", host, "${TARE_PORT}", port,
		"${TARE_CONTROL}", a.control, "${TARE_DIR}", a.dir)
	argv := []string{p.Path}
	if len(p.Under) > 0 {
		under, err := exec.LookPath(p.Under[0])
		if err == nil {
			under, err = filepath.Abs(under) // it is started elsewhere
		}
		if err != nil {
			return err
		}
		argv = slices.Concat([]string{under}, p.Under[1:], argv)
	}
	a.cmd = exec.Command(argv[0], argv[1:]...)
	for _, arg := range p.Args {
		a.cmd.Args = append(a.cmd.Args, a.expand.Replace(arg))
	}
	a.cmd.Env = append(os.Environ(), "TARE_ADDR="+a.addr, "TARE_HOST="+host, "TARE_PORT="+port, "TARE_CONTROL="+a.control, "TARE_DIR="+a.dir)
	if p.Service.Listen != "" {
		a.cmd.Env = append(a.cmd.Env, "PORT="+port, "HOST="+host) // what programs commonly read
	}
	if len(o.CPUs) > 0 {
		a.cmd.Env = append(a.cmd.Env, "GOMAXPROCS="+strconv.Itoa(len(o.CPUs)))
	}
	for _, setting := range p.Env {
		a.cmd.Env = append(a.cmd.Env, a.expand.Replace(setting))
	}
	a.cmd.Dir = cmp.Or(o.Dir, p.Dir, a.dir)
	a.guard.adopt(a.cmd)
	if o.Stdout != nil {
		p.Sink = "pipe"
	}
	return a.redirect(p.Sink, o)
}

// redirect connects the standard outputs; standard input is empty.
func (a *Process) redirect(sink string, o StartOptions) error {
	var to io.Writer = &a.errTail
	if o.Stderr != nil {
		to = io.MultiWriter(to, o.Stderr)
	}
	errs, err := newPump(to)
	if err != nil {
		return err
	}
	a.pumps = append(a.pumps, errs)
	a.cmd.Stderr = errs.w
	switch sink {
	case "", "discard":
		return nil
	case SinkErrors:
		a.cmd.Stdout = errs.w
		return nil
	case "file":
		f, err := os.Create(filepath.Join(a.dir, "stdout"))
		a.cmd.Stdout = f
		return err
	case "pipe":
		to = io.Discard
		if o.Stdout != nil {
			to = o.Stdout
		}
		out, err := newPump(to)
		if err != nil {
			return err
		}
		a.pumps = append(a.pumps, out)
		a.cmd.Stdout = out.w
		return nil
	}
	return fmt.Errorf("no sink is named %q: there are discard, file and pipe", sink)
}

// launch starts the command from a thread that lives as long as the arm: the
// signal that the kernel sends when the parent dies is tied to the thread that
// forked, and CPUs are inherited from it.
func (a *Process) launch(cpus []int) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		unpin, err := pin(cpus)
		if err == nil {
			a.began = time.Now()
			err = a.cmd.Start()
			unpin()
		}
		started <- err
		if err != nil {
			return
		}
		a.err = a.cmd.Wait()
		close(a.exited)
	}()
	return <-started
}

// freeAddr picks a port that nobody listens on now. It is below those that systems give to
// outgoing connections, one of which might take it before the arm does.
func freeAddr(host string) (string, error) {
	var err error
	for range 50 {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(20000+rand.IntN(12000)))); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", fmt.Errorf("picking a free port of %s: those tried from 20000 to 31999 are all taken: %w", host, err)
}

// URL returns the base of requests to the arm, such as http://127.0.0.1:41234,
// without a slash at the end.
func (a *Process) URL() string { return a.url }

// Addr returns the host:port that the arm was told to listen on.
func (a *Process) Addr() string { return a.addr }

// PID returns the process ID; 0 for a URL.
func (a *Process) PID() int {
	if a.cmd == nil {
		return 0
	}
	return a.cmd.Process.Pid
}

// Exited is closed when the process has ended, by itself or by Stop; never for a URL.
func (a *Process) Exited() <-chan struct{} { return a.exited }

// Failure returns how the process ended, with the last that it wrote to standard error; nil while
// it runs, and for a URL. After err, of requests to it, it may take a second to end: its sockets
// close first.
func (a *Process) Failure(err error) error {
	if err != nil && a.cmd != nil {
		select {
		case <-a.exited:
		case <-time.After(time.Second):
		}
	}
	select {
	case <-a.exited:
		return a.died()
	default:
		return nil
	}
}

// errNoProcess says why a URL cannot be watched.
var errNoProcess = fmt.Errorf("the arm is a URL, its process is not ours to watch: %w", ErrNotSupported)

// alive returns why there is nothing to be read of the process.
func (a *Process) alive() error {
	if a.cmd == nil {
		return errNoProcess
	}
	return a.Failure(nil)
}

// died says how the process ended, with the last that it wrote.
func (a *Process) died() error {
	a.pumps[0].settle()
	how := "exit status 0"
	if a.err != nil {
		how = a.err.Error()
	}
	return errors.New("the arm ended: " + how + a.errTail.quoted())
}
