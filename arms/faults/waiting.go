package main

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// sink keeps the compiler from leaving work out.
var sink atomic.Uint64

// work takes some time in proportion to n.
//
//go:noinline
func work(n int) {
	x := uint64(88172645463325252)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.Store(x)
}

const hard = 100_000 // some hundred microseconds

// busy computes.
func busy() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		work(hard)
		io.WriteString(w, "hello\n")
	})
}

// oneLock computes under a lock that all requests want.
func oneLock() http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		work(hard)
		mu.Unlock()
		io.WriteString(w, "hello\n")
	})
}

// noLock computes outside it.
func noLock() http.Handler {
	var mu sync.Mutex
	requests := 0
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		work(hard)
		mu.Lock()
		requests++
		mu.Unlock()
		io.WriteString(w, "hello\n")
	})
}

func sleep() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Millisecond)
		io.WriteString(w, "hello\n")
	})
}

// slowSink is a pipe from which somebody reads slowly.
func slowSink() io.Writer {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	go func() {
		chunk := make([]byte, 4096)
		for {
			if _, err := r.Read(chunk); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return w
}

const line = "a request was answered, and this line has some more to say of it, as log lines have"

// logAndWait writes a line to the slow sink before each answer.
func logAndWait() http.Handler {
	l := log.New(slowSink(), "", log.LstdFlags)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.Print(line)
		io.WriteString(w, "hello\n")
	})
}

// logUnderLock writes to a sink that is quick but computes for each line, which
// the logger has it do under its lock.
func logUnderLock() http.Handler {
	l := log.New(computing{}, "", log.LstdFlags)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.Print(line)
		io.WriteString(w, "hello\n")
	})
}

// computing is a sink that never waits.
type computing struct{}

func (computing) Write(p []byte) (int, error) {
	work(hard)
	return len(p), nil
}

// logAside hands lines over, and drops what the sink cannot take.
func logAside() http.Handler {
	l := log.New(newAside(slowSink()), "", log.LstdFlags)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.Print(line)
		io.WriteString(w, "hello\n")
	})
}

// aside is a writer that never waits.
type aside struct{ lines chan []byte }

func newAside(to io.Writer) *aside {
	a := &aside{lines: make(chan []byte, 1024)}
	go func() {
		for l := range a.lines {
			to.Write(l)
		}
	}()
	return a
}

func (a *aside) Write(p []byte) (int, error) {
	if len(a.lines) == cap(a.lines) {
		return len(p), nil
	}
	select {
	case a.lines <- bytes.Clone(p):
	default:
	}
	return len(p), nil
}

// leave starts a goroutine for one request in 64 that waits for ever: few enough
// that the doctor asks each where it began, on a fast machine too.
func leave() http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%64 == 0 {
			answer := make(chan int)
			go func() { answer <- 1 }()
		}
		io.WriteString(w, "hello\n")
	})
}

// finish starts one that ends.
func finish() http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%64 == 0 {
			answer := make(chan int, 1)
			go func() { answer <- 1 }()
		}
		io.WriteString(w, "hello\n")
	})
}

// upstream is a server of our own, of answers that are too long to be thrown
// away unread.
func upstream() string {
	body := make([]byte, 64<<10)
	return listen(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) })
}

// listen has a server of our own answer, and returns its URL.
func listen(answer http.HandlerFunc) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, answer)
	return "http://" + l.Addr().String()
}

// readWhole reads bodies to their end, however far that is.
func readWhole() http.Handler {
	return reading(func(_ http.ResponseWriter, r *http.Request) io.Reader { return r.Body })
}

// readBounded reads them up to a bound.
func readBounded() http.Handler {
	return reading(func(w http.ResponseWriter, r *http.Request) io.Reader { return http.MaxBytesReader(w, r.Body, 1<<20) })
}

func reading(body func(http.ResponseWriter, *http.Request) io.Reader) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(body(w, r))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		sink.Store(uint64(len(text)))
		io.WriteString(w, "hello\n")
	})
}

// leaveBody closes answers unread, which ends their connections.
func leaveBody() http.Handler {
	return proxy(func(io.Reader) {})
}

// readBody reads them to the end.
func readBody() http.Handler {
	return proxy(func(body io.Reader) { io.Copy(io.Discard, body) })
}

// limit is how long an answer may take.
const limit = 10 * time.Second

func proxy(take func(body io.Reader)) http.Handler {
	url := upstream()
	client := &http.Client{Timeout: limit, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { pass(w, client, url, take) })
}

// askForEver asks four times for each request, and sets no limit.
func askForEver() http.Handler {
	url := listen(func(http.ResponseWriter, *http.Request) {})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 4 {
			pass(w, client, url, func(body io.Reader) { io.Copy(io.Discard, body) })
		}
	})
}

// clientEach makes a client with connections of its own for each request. They
// close soon after, or the machine would run out of ports.
func clientEach() http.Handler {
	url := upstream()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		client := &http.Client{Timeout: limit, Transport: &http.Transport{IdleConnTimeout: 100 * time.Millisecond}}
		pass(w, client, url, func(body io.Reader) { io.Copy(io.Discard, body) })
	})
}

// pass answers once another has.
func pass(w http.ResponseWriter, client *http.Client, url string, take func(body io.Reader)) {
	res, err := client.Get(url)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	take(res.Body)
	res.Body.Close()
	io.WriteString(w, "hello\n")
}

// onePlace computes at a semaphore with one place.
func onePlace() http.Handler { return places(1) }

// manyPlaces computes at one with room for all.
func manyPlaces() http.Handler { return places(256) }

func places(n int) http.Handler {
	taken := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		taken <- struct{}{}
		work(hard)
		<-taken
		io.WriteString(w, "hello\n")
	})
}

// askSlow asks a service that takes its time, in a process of which it shows nothing:
// one that speaks just enough HTTP.
func askSlow() http.Handler {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerSlowly(c)
		}
	}()
	client := &http.Client{Timeout: limit, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	url := "http://" + l.Addr().String()
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		pass(w, client, url, func(body io.Reader) { io.Copy(io.Discard, body) })
	})
}

func answerSlowly(c net.Conn) {
	defer c.Close()
	request := make([]byte, 4096) // one that fits, as they do here
	for {
		if _, err := c.Read(request); err != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

// syncEach waits until the disk has what each request writes.
func syncEach() http.Handler { return journal((*os.File).Sync) }

// syncNever leaves that to the kernel.
func syncNever() http.Handler { return journal(func(*os.File) error { return nil }) }

func journal(sync func(*os.File) error) http.Handler {
	f, err := os.CreateTemp("", "faults")
	if err != nil {
		panic(err)
	}
	os.Remove(f.Name())
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := f.WriteAt([]byte(line), 0)
		if err == nil {
			err = sync(f)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "hello\n")
	})
}
