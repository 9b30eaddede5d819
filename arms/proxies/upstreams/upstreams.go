// Package upstreams starts the servers that stand behind a proxy which is measured, in a process
// of their own.
//
// That process belongs to no arm, so that what is measured of an arm is the proxy alone; it ends
// soon after the program that started it. The servers answer what package engine/answers does,
// and /unsteady: the first of them answers that with 503 for 50 ms of every second.
package upstreams

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/serve"
)

// Count is how many they are.
const Count = 3

// The arguments by which a program starts itself: these two, and the owner's process ID.
const (
	role   = "upstreams"
	launch = "launch"
	serves = "serve"
)

// Main is the upstreams' process to its end if the program was started as such by [Start], and
// does not return then. It is to be the first call of a main.
func Main() {
	if len(os.Args) != 4 || os.Args[1] != role {
		return
	}
	owner, err := strconv.Atoi(os.Args[3])
	switch {
	case err != nil:
	case os.Args[2] == launch:
		err = startApart(owner)
	default:
		err = serveAll(owner)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "upstreams: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Patience is how long a proxy waits for an answer.
const Patience = time.Minute

// Arm is the main of an arm that is nothing but a proxy: serve returns what serves it, before
// upstreams at these addresses.
func Arm(serve func(addresses []string) func(net.Listener) error) {
	Main()
	addresses, err := Start()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
	arm.Main(arm.Options{Serve: serve(addresses)})
}

// Start starts the upstreams and returns their addresses. The program's main must call [Main].
// A process between starts theirs and ends, so that it descends from no arm.
func Start() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, role, launch, strconv.Itoa(os.Getpid()))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("starting the upstreams: %w", err)
	}
	addresses := strings.Fields(string(out))
	if len(addresses) != Count {
		return nil, fmt.Errorf("starting the upstreams: got the addresses %q", out)
	}
	return addresses, nil
}

// startApart starts the upstreams' process, prints what it says, and leaves it alone.
func startApart(owner int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, role, serves, strconv.Itoa(owner))
	cmd.SysProcAttr = apart()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the upstreams do not begin: %w", err)
	}
	fmt.Print(line)
	return nil
}

// serveAll serves them until their owner has ended.
func serveAll(owner int) error {
	begun := time.Now()
	failed := make(chan error, Count)
	var addresses []string
	for i := range Count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addresses = append(addresses, l.Addr().String())
		h := &unsteady{steady: answers.New(), begun: begun, fails: i == 0}
		go func() { failed <- (&serve.Server{Handler: h}).Serve(l) }()
	}
	fmt.Println(strings.Join(addresses, " "))
	look := time.NewTicker(200 * time.Millisecond)
	for {
		select {
		case err := <-failed:
			return err
		case <-look.C:
			if !lives(owner) {
				return nil
			}
		}
	}
}

// unsteady fails for 50 ms of every second on one path, if it does.
type unsteady struct {
	steady http.Handler
	begun  time.Time
	fails  bool
}

func (u *unsteady) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/unsteady" {
		u.steady.ServeHTTP(w, r)
		return
	}
	if at := time.Since(u.begun) % time.Second; u.fails && at >= 500*time.Millisecond && at < 550*time.Millisecond {
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	to, url := *r, *r.URL
	url.Path = answers.PlainPath
	to.URL = &url
	u.steady.ServeHTTP(w, &to)
}
