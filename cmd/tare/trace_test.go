package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// traced is a program that the scripts trace: its requests are slow now and then.
// Only one trace and one CPU profile may run in a process at a time, so it is a
// process of its own. It prints where it listens.
func traced() {
	http.Handle("/", Greet(http.HandlerFunc(answer)))
	http.Handle("/lock", Queue(http.HandlerFunc(answer)))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(l.Addr())
		err = http.Serve(l, nil)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Queue has requests pass one by one, and each hundredth sleep meanwhile.
func Queue(next http.Handler) http.Handler {
	var lock sync.Mutex
	var passed atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		if passed.Add(1)%100 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		lock.Unlock()
		next.ServeHTTP(w, r)
	})
}

// startTraced starts a program and returns where it listens and its process.
func startTraced(t testing.TB) (url, pid string) {
	t.Helper()
	cmd := exec.Command("tare-traced")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(addr), strconv.Itoa(cmd.Process.Pid)
}
