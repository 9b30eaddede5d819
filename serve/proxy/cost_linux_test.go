package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
	"github.com/tarehq/tare/serve/proxy"
)

// A proxy in a process of its own is this test binary started again with costEnv set to its
// upstream's address, and costTLS to anything where it speaks TLS with clients: processor time
// and memory are then the proxy's alone.
const (
	costEnv = "TARE_PROXY_COST"
	costTLS = "TARE_PROXY_COST_TLS"
)

// TestCostProcess is the proxy's process of BenchmarkProxy. It says where it listens, and
// for each line that it reads what it has used.
func TestCostProcess(t *testing.T) {
	upstream := os.Getenv(costEnv)
	if upstream == "" {
		t.Skip("this is the proxy's process of BenchmarkProxy")
	}
	runtime.GOMAXPROCS(1)
	pool := must(proxy.NewPool(proxy.PoolOptions{Servers: []proxy.Server{{Address: upstream}}}))
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	s := &serve.Server{Handler: must(proxy.New(proxy.Options{Pool: pool}))}
	if os.Getenv(costTLS) == "" {
		go func() { _ = s.Serve(l) }()
	} else {
		certificate := httptest.NewUnstartedServer(nil)
		certificate.StartTLS()
		defer certificate.Close()
		s.TLSConfig = certificate.TLS
		go func() { _ = s.ServeTLS(l, "", "") }()
	}
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var u syscall.Rusage
		var m runtime.MemStats
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&m)
		fmt.Println(u.Utime.Nano()+u.Stime.Nano(), u.Nvcsw+u.Nivcsw, m.Mallocs, m.TotalAlloc)
	}
}

// used is what the process has used: nanoseconds of processors, switches of threads,
// allocations and their bytes.
type used struct{ cpu, switches, objects, bytes int64 }

// BenchmarkProxy passes requests at a steady rate, as study proxies does, and says what one
// costs the proxy's process. Time passes by the rate, so ns/op says nothing.
func BenchmarkProxy(b *testing.B) {
	for _, c := range []struct {
		name   string
		size   int
		rate   time.Duration
		secure string
	}{{"1KiB", 1 << 10, 1500, ""}, {"64KiB", 64 << 10, 500, ""}, {"1KiB,TLS", 1 << 10, 1500, "yes"}} {
		b.Run("answer="+c.name, func(b *testing.B) { benchmarkProxy(b, c.size, time.Second/c.rate, c.secure) })
	}
}

func benchmarkProxy(b *testing.B, size int, pause time.Duration, secure string) {
	object := bytes.Repeat([]byte("x"), size)
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	s := &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(object) })}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	child := exec.Command(os.Args[0], "-test.run=^TestCostProcess$")
	child.Env = append(os.Environ(), costEnv+"="+l.Addr().String(), costTLS+"="+secure)
	child.Stderr = os.Stderr
	stdin, stdout := must(child.StdinPipe()), bufio.NewReader(must(child.StdoutPipe()))
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		_ = child.Wait()
	}()
	var addr string
	must(fmt.Fscan(stdout, &addr))
	look := func() (u used) {
		must(fmt.Fprintln(stdin))
		must(fmt.Fscan(stdout, &u.cpu, &u.switches, &u.objects, &u.bytes))
		return u
	}
	clients := make([]*bufio.ReadWriter, 64)
	for i := range clients {
		nc := must(net.Dial("tcp", addr))
		defer nc.Close()
		if secure != "" {
			nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
		}
		clients[i] = bufio.NewReadWriter(bufio.NewReader(nc), bufio.NewWriter(nc))
		pass(b, clients[i], size)
	}
	before, due, n := look(), time.Now(), 0
	for b.Loop() {
		due = due.Add(pause)
		time.Sleep(time.Until(due))
		pass(b, clients[n%len(clients)], size)
		n++
	}
	after := look()
	for unit, x := range map[string]int64{
		"cpu-ns/request": after.cpu - before.cpu, "switches/request": after.switches - before.switches,
		"allocs/request": after.objects - before.objects, "B/request": after.bytes - before.bytes,
	} {
		b.ReportMetric(float64(x)/float64(n), unit)
	}
}

// pass has the proxy pass one request on.
func pass(b *testing.B, client *bufio.ReadWriter, size int) {
	fmt.Fprint(client, "GET /object HTTP/1.1\r\nHost: proxy\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
	client.Flush()
	res, err := http.ReadResponse(client.Reader, nil)
	if err != nil {
		b.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n != int64(size) || res.StatusCode != http.StatusOK {
		b.Fatalf("got %s with %d bytes, %v", res.Status, n, err)
	}
}
