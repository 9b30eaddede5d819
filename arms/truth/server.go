package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// server reads requests and has them answered in time.
//
// Note: net/http's server would do, with a handler that sleeps as exit does. At
// 10,000 requests a second it took 1.4 times the CPU, which the generator lacks
// where they share one, and held half of the requests 40 µs or more too long
// (against 2 µs), the time until the handler runs once it has been woken.
type server struct {
	service service
	exit    *exit
	count   atomic.Uint64
	first   atomic.Int64 // arrival of the first request; 0: none yet
}

// serve accepts connections until the listener fails.
func (s *server) serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: some will be closed
			continue
		}
		go s.converse(conn)
	}
}

// converse reads a connection's requests one after another.
func (s *server) converse(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	gone := make(chan struct{}, 1) // holds a token for each answer that has left
	gone <- struct{}{}
	for {
		// Waiting for bytes first, the answer has mostly left by then and the
		// goroutine is woken once a request.
		if _, err := in.Peek(1); err != nil {
			return
		}
		<-gone
		r, err := http.ReadRequest(in)
		if err != nil {
			io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // it never came whole
		}
		if r.URL.Path == "/count" {
			io.WriteString(conn, answer(r, fmt.Sprintln(s.count.Load())))
			gone <- struct{}{}
		} else {
			s.take(r, departure{conn: conn, gone: gone})
		}
		if r.Close {
			<-gone
			return
		}
	}
}

// take has a request answered when its time has come.
func (s *server) take(r *http.Request, d departure) {
	arrival := s.exit.now()
	s.first.CompareAndSwap(0, int64(arrival))
	first := time.Duration(s.first.Load())
	d.answer = answer(r, "ok\n")
	d.entry.arrival = arrival
	d.entry.held = s.service.held(s.count.Add(1))
	if seq, err := strconv.ParseInt(r.Header.Get("X-Tare-Seq"), 10, 64); err == nil {
		d.entry.seq, d.entry.numbered = seq, true
	}
	// Another request may have been first by a hair's breadth.
	d.due = first + s.service.end(max(0, arrival-first), d.entry.held)
	s.exit.add(d)
}

// answer is a whole answer. Connection is said outright for HTTP/1.0 clients.
func answer(r *http.Request, body string) string {
	connection := "keep-alive"
	if r.Close {
		connection = "close"
	}
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + strconv.Itoa(len(body)) +
		"\r\nConnection: " + connection + "\r\n\r\n"
	if r.Method == http.MethodHead {
		return head
	}
	return head + body
}
