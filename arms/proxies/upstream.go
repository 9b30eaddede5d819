package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/serve"
)

const members = 3

// startUpstreams starts the process of the upstreams and returns their addresses. A
// process between starts it and ends, so that it descends from no arm.
func startUpstreams() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-role", "launch", "-owner", strconv.Itoa(os.Getpid()))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("starting the upstreams: %w", err)
	}
	addresses := strings.Fields(string(out))
	if len(addresses) != members {
		return nil, fmt.Errorf("starting the upstreams: got the addresses %q", out)
	}
	return addresses, nil
}

// launch starts the upstreams' process, prints what it says, and leaves it alone.
func launch(owner int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-role", "upstream", "-owner", strconv.Itoa(owner))
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

// serveUpstreams serves them until their owner has ended.
func serveUpstreams(owner int) error {
	begun := time.Now()
	failed := make(chan error, members)
	var addresses []string
	for i := range members {
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
