package transport_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/tarehq/tare/serve/client/transport"
)

// A server in a process of its own is this test binary started again with serverEnv set:
// processor time is then the client's alone.
const serverEnv = "TARE_TRANSPORT_SERVER"

// TestServerProcess is the server's process of BenchmarkRoundTrip, which answers with 1 KiB until
// its input ends.
func TestServerProcess(t *testing.T) {
	if os.Getenv(serverEnv) == "" {
		t.Skip("this is the server's process of BenchmarkRoundTrip")
	}
	object := bytes.Repeat([]byte("x"), 1<<10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(object) }))
	fmt.Println(s.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// BenchmarkRoundTrip says what a request for 1 KiB takes of the client's process, on 64 connections
// that are all busy.
func BenchmarkRoundTrip(b *testing.B) {
	const connections = 64
	child := exec.Command(os.Args[0], "-test.run=^TestServerProcess$")
	child.Env = append(os.Environ(), serverEnv+"=1")
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
	var url string
	must(fmt.Fscan(stdout, &url))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	standard := http.DefaultTransport.(*http.Transport).Clone()
	standard.MaxIdleConnsPerHost = connections
	for name, tr := range map[string]http.RoundTripper{"lean": &transport.Transport{}, "standard": standard} {
		b.Run("transport="+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(connections)
			before := processorTime(b)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					res, err := tr.RoundTrip(must(http.NewRequest("GET", url, nil)))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			})
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/request")
		})
	}
}

// processorTime is what this process has used, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
