// Command truth is a server whose service times are known, to hold load
// generators against.
//
// Every request is held for a time fixed beforehand: 1 ms, with --slow-share a
// longer one for that share of the requests. With --stall the server answers
// nothing for a while now and then, as in a long collection or behind a lock:
// requests queue, and what was under way resumes afterwards. The first stall
// begins half of --every after the first request.
//
// Requests are served independently of each other, so the truth about a
// schedule is simple: a request's response time is its departure less its
// intended start, whatever a generator says. With --log each request's times
// are written to a CSV file:
//
//	arrival_unix_ns    when it had been read whole
//	work_ns            for how long it was to be held, stalls aside
//	departure_unix_ns  just before its answer was written
//	seq                its X-Tare-Seq header, if that is a whole number
//
// Rows are in order of departure and on disk a tenth of a second later. Times
// are the wall clock's at the start plus the monotonic clock's since. What a
// request was held for is as near to work_ns as the system's timer allows; the
// log has what really was.
//
// GET /count answers with the number of requests so far, itself not counted;
// it is also printed at the end, on SIGTERM. The server listens on TARE_ADDR, or
// 127.0.0.1:8080.
//
//	truth [--work 1ms] [--slow-share 0.01 --slow 50ms] [--stall 1s --every 10s] [--log FILE]
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	s, path := options()
	if err := s.validate(); err != nil {
		fmt.Fprintf(os.Stderr, "truth: %v\n", err)
		os.Exit(2)
	}
	if err := run(s, path); err != nil {
		fmt.Fprintf(os.Stderr, "truth: %v\n", err)
		os.Exit(1)
	}
}

// options reads the flags: what to do and where to write the log.
func options() (s service, path string) {
	flag.DurationVar(&s.work, "work", time.Millisecond, "how long a request is held")
	flag.Float64Var(&s.share, "slow-share", 0, "share of slow requests, 0 to 1")
	flag.DurationVar(&s.slow, "slow", 50*time.Millisecond, "how long a slow request is held")
	flag.DurationVar(&s.stall, "stall", 0, "how long nothing is answered now and then; 0: never")
	flag.DurationVar(&s.every, "every", 10*time.Second, "from the start of a stall to that of the next")
	flag.StringVar(&path, "log", "", "write the times of every request to this `file`")
	flag.Parse()
	return s, path
}

// run serves until it is told to end.
func run(s service, path string) error {
	l, err := net.Listen("tcp", cmp.Or(os.Getenv("TARE_ADDR"), "127.0.0.1:8080"))
	if err != nil {
		return err
	}
	start, j := time.Now(), &journal{}
	if path != "" {
		if j, err = openJournal(path, start); err != nil {
			return err
		}
	}
	// The exit's thread keeps one for itself, asleep or not.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	srv := &server{service: s, exit: &exit{start: start, quantum: s.quantum(), journal: j}}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go srv.exit.run()
	failed := make(chan error, 1)
	go func() { failed <- srv.serve(l) }()
	select {
	case <-ctx.Done():
		fmt.Printf("%d requests\n", srv.count.Load())
		return j.close()
	case err := <-failed:
		return errors.Join(fmt.Errorf("serving: %w", err), j.close())
	}
}
