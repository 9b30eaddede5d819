package history_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/web/history"
)

// TestPostgres tries the same with a server, where there is one.
func TestPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starts a PostgreSQL server")
	}
	source := startPostgres(t)
	tryIndex(t, func(t *testing.T, root string) *history.Index {
		t.Helper()
		var err error
		for range 100 { // it listens before it takes statements
			var x *history.Index
			if x, err = history.Open(t.Context(), root, source); err == nil {
				t.Cleanup(func() { x.Close() })
				return x
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatal(err)
		return nil
	})
}

// startPostgres starts a server of its own for the test and returns its address.
func startPostgres(t *testing.T) string {
	t.Helper()
	programs := map[string]string{}
	for _, name := range []string{"initdb", "postgres"} {
		path, err := exec.LookPath(name)
		if err != nil {
			found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
			if len(found) == 0 {
				t.Skip("SKIPPED: the index in PostgreSQL: no " + name + " is installed (Debian package postgresql)")
			}
			path = found[len(found)-1]
		}
		programs[name] = path
	}
	home, err := os.MkdirTemp("", "tare-pg-") // not below the test's own, which the server's user may not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	as := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 { // which the server refuses to run as
		const nobody = 65534
		as.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(home, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(home, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(programs[name], args...)
		cmd.Dir, cmd.SysProcAttr = home, as
		return cmd
	}
	if out, err := command("initdb", "-D", data, "-U", "tare", "-A", "trust", "-N", "--no-locale", "-E", "UTF8").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	port := freePort(t)
	var log strings.Builder
	server := command("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off")
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		_ = server.Wait()
	})
	source := "postgres://tare@127.0.0.1:" + port + "/postgres?sslmode=disable"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
			return source
		}
		if ctx.Err() != nil {
			_ = server.Process.Kill()
			_ = server.Wait()
			t.Fatalf("the server does not answer: %v\n%s", err, log.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
