// Command service answers on the Unix socket that its argument names, through
// middlewares that are closures, one of which spins in a function without a frame.
package main

import (
	"crypto/md5"
	"crypto/sha512"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

var sink atomic.Uint64

// burn has no frame: nothing on the stack says who called it but the return
// address itself.
//
//go:noinline
func burn(n int) uint64 {
	x := uint64(n) | 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// Spin is a middleware that burns CPU.
func Spin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sink.Store(burn(20_000))
		next.ServeHTTP(w, r)
	})
}

// Alloc is a middleware that allocates.
func Alloc(next http.Handler) http.Handler {
	var kept atomic.Pointer[[]byte]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 64<<10)
		kept.Store(&b)
		next.ServeHTTP(w, r)
	})
}

// Sum is a middleware that hashes, in functions written in assembly that use the frame
// pointer's register for something else.
func Sum(next http.Handler) http.Handler {
	body := make([]byte, 32<<10)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		short, long := md5.Sum(body), sha512.Sum512(body)
		sink.Add(uint64(short[0]) + uint64(long[0]))
		next.ServeHTTP(w, r)
	})
}

// anew has the program begin anew, in the same process, once it is told to.
func anew() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGHUP)
	<-told
	if err := os.Remove(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	log.Fatal(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// yield keeps the scheduler busy.
func yield() {
	for {
		runtime.Gosched()
	}
}

// deep needs 16 KiB of stack n times, and then once more.
//
//go:noinline
func deep(n int) byte {
	var room [16 << 10]byte
	room[n] = byte(n)
	if n == 0 {
		return room[0]
	}
	return deep(n-1) + room[n]
}

// Deep is a handler that needs a stack larger than goroutines begin with.
func Deep(http.ResponseWriter, *http.Request) { sink.Add(uint64(deep(30))) }

// grow has stacks grow: of goroutines that end as soon as they have called a handler.
func grow() {
	ended := make(chan bool)
	for {
		go func() {
			http.HandlerFunc(Deep).ServeHTTP(nil, nil)
			ended <- true
		}()
		<-ended
		time.Sleep(time.Millisecond)
	}
}

func main() {
	log.SetFlags(0)
	go anew()
	with := func(next http.Handler) http.Handler { return next }
	for _, arg := range os.Args[2:] {
		switch arg {
		case "yield":
			go yield()
		case "grow":
			go grow()
		case "sum":
			with = Sum
		}
	}
	l, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Chmod(os.Args[1], 0o777); err != nil {
		log.Fatal(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := w.Write([]byte("hello")); err != nil {
			log.Print(err)
		}
	})
	log.Fatal(http.Serve(l, with(Spin(Alloc(hello)))))
}
