// Command service answers requests that it sends itself, a millisecond apart or as the
// variable PAUSE says, through two middlewares, and says how many in a line once a second.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// version is set when it is built, so that builds differ.
var version = "none"

var sink atomic.Uint64

//go:noinline
func burn(n int) (x uint64) {
	for i := range n {
		x = x*31 + uint64(i)
	}
	return x
}

type auth struct{ next http.Handler }

func (a *auth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sink.Add(burn(100_000))
	a.next.ServeHTTP(w, r)
}

type orders struct{}

func (orders) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	sink.Add(burn(50_000))
	io.WriteString(w, version)
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	pause := time.Millisecond
	if text := os.Getenv("PAUSE"); text != "" {
		if pause, err = time.ParseDuration(text); err != nil {
			log.Fatal(err)
		}
	}
	go http.Serve(l, &auth{orders{}})
	var answered atomic.Int64
	go func() {
		for {
			res, err := http.Get("http://" + l.Addr().String())
			if err != nil {
				log.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
			answered.Add(1)
			time.Sleep(pause)
		}
	}()
	for range time.Tick(time.Second) {
		fmt.Println(answered.Load())
	}
}
