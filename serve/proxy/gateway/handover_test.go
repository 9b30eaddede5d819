//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy/gateway/region/regiontest"
)

// place is a folder with a file for a gateway, whose admin socket is there, too.
type place struct{ dir, at, socket, path, text string }

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{dir: folder(t), at: freeAddress(t)}
	p.socket, p.path = filepath.Join(p.dir, "admin"), filepath.Join(p.dir, "proxy.json")
	p.text = strings.Replace(file(`[{"address": "`+p.at+`"}]`, echo(t)), "{", fmt.Sprintf(`{"admin": %q, `, p.socket), 1)
	p.write(t, p.path, p.text)
	return p
}

func (p place) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// next asks for a gateway's sockets, as the one does that is to replace it, and gets stuck.
func next(t *testing.T, socket string) *former {
	t.Helper()
	f, err := replace(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return &f
}

func (p *process) terminate(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.wait(t)
}

// TestLate has a gateway go on where the one that is to replace it takes too long, and that
// one end. Another one, in time, replaces it.
func TestLate(t *testing.T) {
	p := newPlace(t)
	first := begin(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, patienceVar+"=2s") }, p.path)
	database, late := filepath.Join(p.dir, "regions"), filepath.Join(p.dir, "late.json")
	if err := syscall.Mkfifo(database, 0o600); err != nil { // to read it takes until somebody writes it
		t.Fatal(err)
	}
	p.write(t, late, strings.Replace(p.text, "{", fmt.Sprintf(`{"regions": {"database": %q}, `, database), 1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, os.Args[0], "-replace", p.socket, late)
	cmd.Env = append(os.Environ(), roleVar+"=gateway", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return strings.Contains(first.said.String(), "no other process goes on") }, func() string { return "it waits yet:\n" + first.said.String() })
	fifo, err := os.OpenFile(database, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fifo.Write(regiontest.Database(map[string]string{"203.0.113.0/24": "DE"}))
	fifo.Close()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if want := "goes on: the next process could not serve within 2s"; err == nil || ctx.Err() != nil || !strings.Contains(said.String(), want) {
		t.Errorf("the late one ended with %v, want %q:\n%s", err, want, &said)
	}
	one := &client{at: p.at}
	if err := one.send("POST", "order"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	one.close()
	last := begin(t, nil, "-replace", p.socket, p.path)
	first.wait(t)
	last.terminate(t)
}

// TestEndBeforeNext has a gateway end while the one that is to replace it is stuck. That one
// has the sockets then, and what comes waits for it.
func TestEndBeforeNext(t *testing.T) {
	p := newPlace(t)
	first := begin(t, nil, p.path)
	f := next(t, p.socket)
	begun := time.Now()
	first.terminate(t)
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("it took %s to end", took)
	}
	if err := f.succeed(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.socket); err != nil {
		t.Errorf("the admin socket: %v", err)
	}
	c, err := net.Dial("tcp", p.at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, ok := f.take("tcp", p.at).(*net.TCPListener)
	if !ok {
		t.Fatalf("the sockets lack %s", p.at)
	}
	defer l.Close()
	_ = l.SetDeadline(time.Now().Add(20 * time.Second))
	if got, err := l.Accept(); err != nil {
		t.Error(err)
	} else {
		got.Close()
	}
}

// TestNext has a process not go on where a file was taken since it asked, one that asks later
// have precedence, and the gateway end once that one can serve.
func TestNext(t *testing.T) {
	p := newPlace(t)
	g := run(t)
	give := func() {
		t.Helper()
		begun := time.Now()
		if got := g.give(t, p.text); len(got.Problems) > 0 || time.Since(begun) > 15*time.Second {
			t.Fatalf("got %+v after %s", got, time.Since(begun))
		}
	}
	give()
	stale := next(t, p.socket)
	give()
	if err := stale.succeed(); err == nil || !strings.HasSuffix(err.Error(), "goes on: it has read its file again since") {
		t.Errorf("the one that asked before the file was taken: %v", err)
	}
	former := next(t, p.socket)
	later := next(t, p.socket)
	if err := former.succeed(); err == nil || !strings.HasSuffix(err.Error(), "goes on: another process has asked since") {
		t.Errorf("the one that asked first: %v", err)
	}
	if err := later.succeed(); err != nil {
		t.Errorf("the one that asked later: %v", err)
	}
	g.end(t)
	if _, err := os.Stat(p.socket); err != nil {
		t.Errorf("the admin socket: %v", err)
	}
}

// TestLastWords has a process that stops waiting hear what was said before, and the other one
// notice that nothing it says is heard any more.
func TestLastWords(t *testing.T) {
	for _, said := range []string{"", "."} {
		l, err := net.Listen("unix", filepath.Join(folder(t), "s"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		next, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		first, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		if _, err := io.WriteString(first, said); err != nil {
			t.Fatal(err)
		}
		_ = next.SetReadDeadline(time.Unix(1, 0)) // it has waited for long enough
		f := former{conn: next}
		if got := f.lastWords(); string(got) != said {
			t.Errorf("got %q, want %q", got, said)
		}
		if _, err := first.Write([]byte(".")); err == nil {
			t.Error("what nobody hears can be said")
		}
	}
}

// TestFormerGone has a process go on where the one that it replaces was killed meanwhile.
func TestFormerGone(t *testing.T) {
	p := newPlace(t)
	first := begin(t, nil, p.path)
	f := next(t, p.socket)
	_ = first.cmd.Process.Kill()
	<-first.ended
	if err := f.succeed(); err != nil {
		t.Error(err)
	}
}

// TestActivatedAdmin has a Unix socket of the service manager stay where it is: when the
// gateway ends, after a restart, and where the file names another one.
func TestActivatedAdmin(t *testing.T) {
	p := newPlace(t)
	unix, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	l, err := net.Listen("tcp", p.at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var files []*os.File
	for _, s := range []interface{ File() (*os.File, error) }{l.(*net.TCPListener), unix} {
		f, err := s.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	pass := func(cmd *exec.Cmd) {
		cmd.ExtraFiles = files
		cmd.Env = append(cmd.Env, "LISTEN_FDS=2")
	}
	other := filepath.Join(p.dir, "other")
	for _, admin := range []string{p.socket, other} {
		p.write(t, p.path, strings.Replace(p.text, p.socket, admin, 1))
		one := begin(t, pass, p.path)
		if status, page := ask(t, admin, "GET", "/status"); status != http.StatusOK {
			t.Errorf("%s: got %d %q", admin, status, page)
		}
		if admin == p.socket {
			last := begin(t, nil, "-replace", p.socket, p.path)
			one.wait(t)
			one = last
		}
		one.terminate(t)
		c, err := net.Dial("unix", p.socket)
		if err != nil {
			t.Fatalf("with admin at %s: %v", admin, err)
		}
		c.Close()
	}
	if _, err := os.Stat(other); err == nil {
		t.Errorf("%s, the gateway's own, is there yet", other)
	}
}

// TestEndsSoon has idle connections not hold up a gateway that nobody replaces. Their next
// requests would be refused elsewhere anyway.
func TestEndsSoon(t *testing.T) {
	p := newPlace(t)
	p.write(t, p.path, strings.Replace(p.text, `"grace": "2s"`, `"grace": "1m"`, 1))
	g := begin(t, nil, p.path)
	idle := &client{at: p.at}
	defer idle.close()
	if err := idle.send("POST", "order"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	g.terminate(t)
	if took := time.Since(begun); took > lastRequest-5*time.Second {
		t.Errorf("it took %s to end", took)
	}
}

// counting answers as echo does, and tells how often it got each body.
func counting(t *testing.T) (at string, counts func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	got := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		got[string(body)]++
		n := len(got)
		mu.Unlock()
		if n%16 == 0 {
			time.Sleep(50 * time.Millisecond) // some requests are under way for longer
		}
		fmt.Fprintf(w, "%s %s", r.Method, body)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// streams sends requests by HTTP/2, several at a time on one connection.
type streams struct {
	url string
	http.Client
}

func (s *streams) send(method, body string) error {
	r, err := http.NewRequest(method, s.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := s.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if want := method + " " + body; err != nil || res.StatusCode != http.StatusOK || res.ProtoMajor != 2 || string(got) != want {
		return fmt.Errorf("got %s %s %q, %v; want %q by HTTP/2", res.Proto, res.Status, got, err, want)
	}
	return nil
}

func (s *streams) close() { s.CloseIdleConnections() }

// TestRestartsTLS has the gateway be replaced under requests by TLS, by HTTP/2 on TLS and by
// HTTP/2 without. None fails, and the service gets each one once. An idle connection has time
// for one more request.
func TestRestartsTLS(t *testing.T) {
	const restarts = 5
	p := newPlace(t)
	service, counts := counting(t)
	cert, key := certificate(t, p.dir, 1)
	plain := freeAddress(t)
	listen := fmt.Sprintf(`[{"address": %q, "certificate": %q, "key": %q}, {"address": %q, "h2c": true}]`, p.at, cert, key, plain)
	p.write(t, p.path, strings.Replace(file(listen, service), "{", fmt.Sprintf(`{"admin": %q, `, p.socket), 1))
	all := []*process{begin(t, nil, p.path)}
	config := &tls.Config{InsecureSkipVerify: true}
	secure := &streams{"https://" + p.at, http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}}}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	open := &streams{"http://" + plain, http.Client{Transport: &http.Transport{Protocols: protocols}}}
	end := loadBy([]sender{&client{at: p.at, tls: config}, &client{at: p.at, tls: config}, &client{at: plain}, secure, secure, secure, open, open, open})
	idle := &client{at: p.at, tls: config}
	if err := idle.send("POST", "the first of an idle client"); err != nil {
		t.Fatal(err)
	}
	for i := range restarts {
		time.Sleep(100 * time.Millisecond) // requests come between
		all = append(all, begin(t, nil, "-replace", p.socket, p.path))
		if i > 0 {
			continue
		}
		time.Sleep(time.Second) // where nobody replaces a gateway, it has closed the connection by then
		if err := idle.send("POST", "the last of an idle client"); err != nil || idle.conn != nil {
			t.Errorf("the idle client got %v, told to leave: %t", err, idle.conn == nil)
		}
	}
	n, failed := end()
	if failed != nil || n == 0 {
		t.Fatalf("%d requests, failed: %v", n, failed)
	}
	ran := counts()
	if len(ran) != int(n)+2 {
		t.Errorf("the service got %d different requests, want %d", len(ran), n+2)
	}
	for body, times := range ran {
		if times != 1 {
			t.Errorf("the service got %q %d times", body, times)
		}
	}
	t.Logf("%d restarts, %d requests, 0 failed", restarts, n)
	for _, former := range all[:restarts] {
		former.wait(t)
	}
	all[restarts].terminate(t)
}
