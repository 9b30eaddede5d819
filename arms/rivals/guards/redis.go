package main

import (
	"fmt"
	"net"
	"os/exec"
	"time"
)

// startRedis starts redis-server on a free port of loopback and returns its address. It
// keeps nothing on disk. It ends when this process does, however that ends: the shell that
// runs it then reads the end of its input.
func startRedis() (string, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("%w: it is in Debian's package redis-server", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-c", `"$0" "$@" </dev/null & cat; kill $!`, program,
		"--port", fmt.Sprint(addr.Port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	if _, err := cmd.StdinPipe(); err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	go func() { _ = cmd.Wait() }() // it keeps the pipe open until then
	for range 500 {
		if conn, err := net.DialTimeout("tcp", addr.String(), time.Second); err == nil {
			_ = conn.Close() // it was only tried
			return addr.String(), nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "", fmt.Errorf("redis-server does not listen on %s after 5 s", addr)
}
