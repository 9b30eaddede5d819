package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tarehq/tare/arms/proxies/upstreams"
)

// The script has the first upstream of three fail for a while, once in each way, before each
// proxy, and tells for each second what clients saw whose requests nobody repeats.
const (
	scriptSeconds = 6
	failsAt       = 1 // the second in which the upstream begins to fail
	backAt        = 4 // and the one in which it is back
	perSecond     = 60
	patience      = 8 // seconds that a client waits for an answer
)

// fault is what an upstream does. The zero value is none.
type fault int32

const (
	well    fault = iota
	refuses       // nobody listens, and its connections are closed
	drops         // it reads requests and closes the connection
	stalls        // it reads requests and says nothing
	busy          // it answers 503
	killed        // its connections are reset amid requests, and nobody listens
)

func (f fault) String() string {
	return [...]string{"well", "refuses", "drops", "stalls", "answers 503", "is killed"}[f]
}

// ledger counts how often each order was run.
type ledger struct {
	mu   sync.Mutex
	runs map[string]int
}

func (l *ledger) add(order string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[order]++
}

// twice returns how many orders were run more than once.
func (l *ledger) twice() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.runs {
		if times > 1 {
			n++
		}
	}
	return n
}

// patient is an upstream that may fail.
type patient struct {
	addr   string
	ledger *ledger
	now    atomic.Int32 // a fault
	server *http.Server

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newPatient(l *ledger) (*patient, error) {
	p := &patient{ledger: l, conns: map[net.Conn]bool{}}
	return p, p.listen("127.0.0.1:0")
}

func (p *patient) listen(addr string) error {
	var l net.Listener
	var err error
	for range 100 { // its port may be in use for a moment
		if l, err = net.Listen("tcp", addr); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	p.addr = l.Addr().String()
	p.server = &http.Server{Handler: p, ConnState: p.note}
	go func(s *http.Server) { _ = s.Serve(l) }(p.server) // until it is closed
	return nil
}

func (p *patient) note(c net.Conn, s http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	if s == http.StateClosed || s == http.StateHijacked {
		delete(p.conns, c)
	}
}

// become has the upstream fail from now on, or be well.
func (p *patient) become(f fault) error {
	before := fault(p.now.Swap(int32(f)))
	switch {
	case f == killed:
		p.mu.Lock()
		for c := range p.conns {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // so that closing resets it
			}
		}
		p.mu.Unlock()
		return p.server.Close()
	case f == refuses:
		return p.server.Close()
	case f == well && (before == killed || before == refuses):
		return p.listen(p.addr)
	}
	return nil
}

func (p *patient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if order := r.Header.Get("X-Order"); order != "" {
		p.ledger.add(order)
	}
	switch fault(p.now.Load()) {
	case drops:
		panic(http.ErrAbortHandler)
	case stalls:
		<-r.Context().Done()
	case busy:
		http.Error(w, "busy", http.StatusServiceUnavailable)
	default:
		time.Sleep(5 * time.Millisecond) // so that some are under way at any time
		_, _ = io.WriteString(w, "done")
	}
}

// seen is what clients saw of requests that were sent in one second.
type seen struct {
	safe, badSafe   int // GET, HEAD, and PUT with an idempotency key
	posts, badPosts int
	slowest         time.Duration
}

func (s *seen) add(o seen) {
	s.safe, s.badSafe, s.posts, s.badPosts = s.safe+o.safe, s.badSafe+o.badSafe, s.posts+o.posts, s.badPosts+o.badPosts
	s.slowest = max(s.slowest, o.slowest)
}

func (s seen) String() string {
	return fmt.Sprintf("%d / %d / %s", s.badSafe, s.badPosts, s.slowest.Round(time.Millisecond))
}

// course is what a proxy's clients saw of a fault.
type course struct {
	seconds [scriptSeconds]seen
	twice   int // POST that were run more than once
}

// perform runs the script of a fault before a proxy.
func perform(kind string, f fault, second time.Duration) (*course, error) {
	l := &ledger{runs: map[string]int{}}
	var ups []*patient
	var addresses []string
	for range upstreams.Count {
		p, err := newPatient(l)
		if err != nil {
			return nil, err
		}
		defer func() { _ = p.server.Close() }()
		ups, addresses = append(ups, p), append(addresses, p.addr)
	}
	at, end, err := startProxy(kind, addresses)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", kind, err)
	}
	defer end()
	c := &course{}
	failed := make(chan error, 1)
	begun := time.Now()
	go func() {
		time.Sleep(failsAt * second)
		err := ups[0].become(f)
		time.Sleep(time.Until(begun.Add(backAt * second)))
		failed <- errors.Join(err, ups[0].become(well))
	}()
	var mu sync.Mutex
	var all sync.WaitGroup
	client := &http.Transport{DisableKeepAlives: true} // else it repeats requests by itself
	for i := range scriptSeconds * perSecond {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * second / perSecond)))
		all.Go(func() {
			s := sendOne(client, at, i, patience*second)
			mu.Lock()
			defer mu.Unlock()
			c.seconds[i/perSecond].add(s)
		})
	}
	all.Wait()
	c.twice = l.twice()
	return c, <-failed
}

// sendOne sends a request and tells what became of it.
func sendOne(client http.RoundTripper, at string, i int, most time.Duration) seen {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	method := []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost}[i%4]
	var body io.Reader
	if method == http.MethodPut || method == http.MethodPost {
		body = strings.NewReader("an order")
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+at+"/orders", body)
	if err != nil {
		return seen{safe: 1, badSafe: 1}
	}
	switch method {
	case http.MethodPut:
		r.Header.Set("Idempotency-Key", fmt.Sprint(i))
	case http.MethodPost:
		r.Header.Set("X-Order", fmt.Sprint(i))
	}
	begun := time.Now()
	res, err := client.RoundTrip(r)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	bad := 0
	if err != nil || res.StatusCode != http.StatusOK {
		bad = 1
	}
	if method == http.MethodPost {
		return seen{posts: 1, badPosts: bad, slowest: time.Since(begun)}
	}
	return seen{safe: 1, badSafe: bad, slowest: time.Since(begun)}
}

// startProxy starts a proxy before these upstreams and waits until it passes requests on.
func startProxy(kind string, upstreams []string) (at string, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "proxies-")
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	at = l.Addr().String()
	l.Close()
	cmd := exec.Command(self, "-proxy", kind, "-upstreams", strings.Join(upstreams, ","))
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "TARE_ADDR="+at, "TARE_CONTROL=")
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		late := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
		os.RemoveAll(dir)
	}
	for range 500 {
		if s := sendOne(&http.Transport{DisableKeepAlives: true}, at, 0, time.Second); s.badSafe == 0 {
			return at, end, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	end()
	return "", nil, errors.New("it answers nothing")
}

// runScript prints the table of what clients of some proxies saw.
func runScript(kinds []string, second time.Duration, to io.Writer) error {
	head, rule := "| upstream | second |", "|---|---|"
	for _, kind := range kinds {
		if external[kind] != nil {
			if _, err := exec.LookPath(kind); err != nil {
				return fmt.Errorf("%w; leave %s out", err, kind)
			}
		}
		head, rule = head+" "+kind+" |", rule+"---|"
	}
	fmt.Fprintf(to, "%s\n%s\n", head, rule)
	totals, twice := make([]seen, len(kinds)), make([]int, len(kinds))
	for f := refuses; f <= killed; f++ {
		courses, failures := make([]*course, len(kinds)), make([]error, len(kinds))
		var all sync.WaitGroup
		for i, kind := range kinds {
			all.Go(func() { courses[i], failures[i] = perform(kind, f, second) })
		}
		all.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
		for n := range scriptSeconds {
			is := f
			if n < failsAt || n >= backAt {
				is = well
			}
			row := fmt.Sprintf("| %s | %d |", is, n+1)
			for _, c := range courses {
				row += " " + c.seconds[n].String() + " |"
			}
			fmt.Fprintln(to, row)
		}
		for i, c := range courses {
			for _, s := range c.seconds {
				totals[i].add(s)
			}
			twice[i] += c.twice
		}
	}
	bad, again := "| bad in all | |", "| POST run twice | |"
	for i, s := range totals {
		bad += fmt.Sprintf(" %d of %d / %d of %d |", s.badSafe, s.safe, s.badPosts, s.posts)
		again += fmt.Sprintf(" %d |", twice[i])
	}
	_, err := fmt.Fprintf(to, "%s\n%s\n", bad, again)
	return err
}
