package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/tarehq/tare/serve"
)

// A program that had an http.Server changes the name of the type. Its mux, its
// handlers and its middleware stay as they are.
func Example() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.PathValue("name"))
	})
	srv := &serve.Server{Handler: mux} // was http.Server

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- srv.Serve(l) }()

	res, err := http.Get("http://" + l.Addr().String() + "/hello/gopher")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	fmt.Println(res.StatusCode, string(body), err)

	srv.Close()
	fmt.Println(<-served)
	// Output:
	// 200 hello gopher <nil>
	// http: Server closed
}

// Shutdown waits for the request at hand, which is answered; Serve returns at
// once, so the program must wait for Shutdown.
func ExampleServer_Shutdown() {
	entered := make(chan struct{})
	srv := &serve.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		time.Sleep(50 * time.Millisecond) // the work
		io.WriteString(w, "finished")
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- srv.Serve(l) }()

	answer := make(chan string)
	go func() {
		res, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		answer <- fmt.Sprintf("%s, closing: %v", body, res.Close)
	}()

	<-entered
	down := make(chan error)
	go func() { down <- srv.Shutdown(context.Background()) }()
	fmt.Println("Serve:", <-served) // nothing new is accepted
	fmt.Println("answer:", <-answer)
	fmt.Println("Shutdown:", <-down)
	// Output:
	// Serve: http: Server closed
	// answer: finished, closing: true
	// Shutdown: <nil>
}

// In a stream a client may be silent for longer than Limits.StallTimeout, which would
// end its body. A layer takes that limit off; http.Server has none.
func ExampleLimits_stream() {
	quiet := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).SetReadDeadline(time.Time{})
			next.ServeHTTP(w, r)
		})
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			fmt.Fprintln(w, lines.Text())
			http.NewResponseController(w).Flush()
		}
	})
	protos := &http.Protocols{}
	protos.SetUnencryptedHTTP2(true)
	srv := &serve.Server{Handler: quiet(echo), Protocols: protos, Limits: serve.Limits{StallTimeout: 100 * time.Millisecond}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	go srv.Serve(l)

	body, say := io.Pipe()
	go func() {
		for _, line := range []string{"hello", "and later"} {
			fmt.Fprintln(say, line)
			time.Sleep(500 * time.Millisecond)
		}
		say.Close()
	}()
	client := &http.Client{Transport: &http.Transport{Protocols: protos}}
	res, err := client.Post("http://"+l.Addr().String(), "text/plain", body)
	if err != nil {
		fmt.Println(err)
		return
	}
	heard, err := io.ReadAll(res.Body)
	fmt.Print(string(heard), err)
	// Output:
	// hello
	// and later
	// <nil>
}
