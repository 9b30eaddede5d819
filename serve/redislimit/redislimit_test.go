//go:build unix

package redislimit_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/ratelimit"
	"github.com/tarehq/tare/serve/redislimit"
)

func Example() {
	l, err := redislimit.New(redislimit.Options{
		Redis:     rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, // nobody is there
		Law:       ratelimit.GCRA{Rate: 4, Per: time.Hour},
		Processes: 2,
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 ""
	// 200 ""
	// 429 "1800"
}

// server is a Redis that tests start, freeze and kill.
type server struct {
	t    testing.TB
	addr string
	args []string
	cmd  *exec.Cmd
}

// startRedis starts Redis or Valkey on a free port, or skips the test.
func startRedis(t testing.TB, args ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: l.Addr().String(), args: args}
	l.Close()
	s.start()
	return s
}

func (s *server) start() {
	s.t.Helper()
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	path, err := exec.LookPath(program)
	if err != nil {
		s.t.Skipf("SKIPPED: limits in Redis: %v", err)
	}
	_, port, _ := net.SplitHostPort(s.addr)
	s.cmd = exec.Command(path, append(slices.Clone(s.args), "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.t.TempDir())...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd := s.cmd
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 200 {
		if conn, err := net.Dial("tcp", s.addr); err == nil {
			fmt.Fprint(conn, "PING\r\n")
			b := make([]byte, 5)
			_, _ = io.ReadFull(conn, b)
			conn.Close()
			if string(b) == "+PONG" {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Fatal("redis does not answer")
}

func (s *server) kill() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() }

func (s *server) signal(sig syscall.Signal) {
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Error(err)
	}
}

// ask returns what the server answers to a command and to QUIT.
func (s *server) ask(command string) string {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // Sentinel does not hang up
	fmt.Fprint(conn, command+"QUIT\r\n")
	text, _ := io.ReadAll(conn)
	return string(text)
}

// await asks until the answer has what is wanted.
func (s *server) await(command, want string) {
	s.t.Helper()
	var got string
	for range 300 {
		if got = s.ask(command); strings.Contains(got, want) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatalf("%q: no %q after 30 s in %q", command, want, got)
}

// commands returns how many scripts the server has run.
func (s *server) commands() (n int) {
	text := s.ask("INFO commandstats\r\n")
	for _, name := range []string{"cmdstat_evalsha:calls=", "cmdstat_eval:calls="} {
		if _, after, ok := strings.Cut(text, name); ok {
			count, _, _ := strings.Cut(after, ",")
			i, _ := strconv.Atoi(count)
			n += i
		}
	}
	return n
}

func newLimiter(t testing.TB, addr string, o redislimit.Options) *redislimit.Limiter {
	t.Helper()
	o.Redis.InitAddress = []string{addr}
	if o.Key == nil {
		o.Key = func(r *http.Request) string { return r.Header.Get("X-Key") }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	l, err := redislimit.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func request(key string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Key", key)
	return r
}

// TestLaw holds the script to what package ratelimit does in memory.
func TestLaw(t *testing.T) {
	s := startRedis(t)
	a := newLimiter(t, s.addr, redislimit.Options{Law: ratelimit.GCRA{Rate: 10, Burst: 5}, Timeout: time.Second})
	b := newLimiter(t, s.addr, redislimit.Options{Law: ratelimit.GCRA{Rate: 10, Burst: 5}, Timeout: time.Second})
	begun := time.Now()
	for i := range 5 { // by two processes in turn
		if !([]*redislimit.Limiter{a, b})[i%2].Take(request("x")).Allowed {
			t.Errorf("request %d of a burst of 5 is refused", i)
		}
	}
	res := a.Take(request("x"))
	if res.Allowed && time.Since(begun) < 90*time.Millisecond {
		t.Error("a sixth request passes")
	}
	if !res.Allowed && (res.Retry <= 0 || res.Retry > 100*time.Millisecond) {
		t.Errorf("retry after %s, want 100 ms at most", res.Retry)
	}
	before := s.commands()
	for range 100 {
		a.Take(request("x"))
	}
	if n := s.commands() - before; n > 1+int(time.Since(begun)/(100*time.Millisecond)) {
		t.Errorf("100 refused requests cost %d round trips", n)
	}
	time.Sleep(110 * time.Millisecond)
	if !b.Take(request("x")).Allowed {
		t.Error("refused after its time")
	}
	if !b.Take(request("y")).Allowed {
		t.Error("another client is refused")
	}
	if c := a.Counts(); c.Local != 0 || c.Failures != 0 {
		t.Errorf("%+v", c)
	}
}

// TestWindow holds the window's script to what package ratelimit does in memory: the limit
// at once by two processes together, what remains, and when others may come.
func TestWindow(t *testing.T) {
	s := startRedis(t)
	hour := redislimit.Options{Law: ratelimit.Window{Limit: 5, Length: time.Hour}, Timeout: 5 * time.Second, Prefix: "hour:"}
	a, b := newLimiter(t, s.addr, hour), newLimiter(t, s.addr, hour)
	for i := range 5 {
		if res := []*redislimit.Limiter{a, b}[i%2].Take(request("x")); !res.Allowed || res.Remaining != 4-i || res.Reset > 2*time.Hour || res.Reset < time.Minute {
			t.Errorf("request %d of 5: %+v", i, res)
		}
	}
	if res := b.Take(request("x")); res.Allowed || res.Remaining != 0 || res.Retry <= 0 || res.Retry > 2*time.Hour {
		t.Errorf("a sixth request: %+v", res)
	}
	if !b.Take(request("y")).Allowed {
		t.Error("another client is refused")
	}
	const limit, length = 5, 400 * time.Millisecond
	l := newLimiter(t, s.addr, redislimit.Options{Law: ratelimit.Window{Limit: limit, Length: length}, Timeout: 5 * time.Second})
	begun, passed := time.Now(), 0
	for range 40 {
		res := l.Take(request("x"))
		if !res.Allowed {
			time.Sleep(res.Retry)
			if res = l.Take(request("x")); !res.Allowed {
				t.Errorf("refused after Retry, again for %s", res.Retry)
			}
		}
		passed++
	}
	if most := limit * int(2+time.Since(begun)/length); passed > most {
		t.Errorf("%d passed in %s, want %d at most", passed, time.Since(begun), most)
	}
	for _, l := range []*redislimit.Limiter{a, b, l} {
		if c := l.Counts(); c.Local != 0 || c.Failures != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// TestAnnounce reads the fields of answers, with Redis and without: then they say what
// remains of this process's share.
func TestAnnounce(t *testing.T) {
	s := startRedis(t)
	for name, c := range map[string]struct {
		addr   string
		law    ratelimit.Law
		policy string
		batch  int
		left   []int // after each request that passes
		reset  int   // seconds at most, when refused
	}{
		"GCRA":              {s.addr, ratelimit.GCRA{Rate: 4, Per: time.Hour}, `"default";q=4;w=3600`, 1, []int{3, 2, 1, 0}, 900},
		"GCRA, batch":       {s.addr, ratelimit.GCRA{Rate: 4, Per: time.Hour}, `"default";q=4;w=3600`, 2, []int{3, 2, 1, 0}, 1800},
		"window":            {s.addr, ratelimit.Window{Limit: 3, Length: time.Hour}, `"default";q=3;w=3600`, 1, []int{2, 1, 0}, 7200},
		"GCRA, no Redis":    {"127.0.0.1:1", ratelimit.GCRA{Rate: 4, Per: time.Hour}, `"default";q=4;w=3600`, 1, []int{1, 0}, 1800},
		"window, no Redis":  {"127.0.0.1:1", ratelimit.Window{Limit: 4, Length: time.Hour}, `"default";q=4;w=3600`, 1, []int{1, 0}, 7200},
		"less than a share": {"127.0.0.1:1", ratelimit.Window{Limit: 1}, `"default";q=1;w=60`, 1, []int{0}, 240},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, c.addr, redislimit.Options{Law: c.law, Batch: c.batch, Processes: 2, Announce: true, Timeout: 5 * time.Second, Prefix: name})
			h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			ask := func() (code, left, reset, retry int) {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, request("x"))
				if got := w.Header().Get("RateLimit-Policy"); got != c.policy {
					t.Errorf("RateLimit-Policy: %s, want %s", got, c.policy)
				}
				if _, err := fmt.Sscanf(w.Header().Get("RateLimit"), `"default";r=%d;t=%d`, &left, &reset); err != nil {
					t.Fatalf("RateLimit: %s: %v", w.Header().Get("RateLimit"), err)
				}
				retry, _ = strconv.Atoi(w.Header().Get("Retry-After"))
				return w.Code, left, reset, retry
			}
			for i, want := range c.left {
				if code, left, reset, _ := ask(); code != http.StatusOK || left != want || reset < 1 {
					t.Errorf("request %d: %d, %d left, %d s, want 200 and %d left", i, code, left, reset, want)
				}
			}
			code, left, reset, retry := ask()
			if code != http.StatusTooManyRequests || left != 0 || retry < reset || reset < 1 || reset > c.reset {
				t.Errorf("beyond the limit: %d, %d left, %d s, Retry-After %d, want 429 and %d s at most, Retry-After not less", code, left, reset, retry, c.reset)
			}
		})
	}
}

// TestTrips counts round trips at the server: one a request, with a batch one in fifty.
// The first ten requests may find that it has no script yet.
func TestTrips(t *testing.T) {
	s := startRedis(t)
	gcra, window := ratelimit.GCRA{Rate: 10000}, ratelimit.Window{Limit: 10000, Length: time.Second}
	for i, c := range []struct {
		law         ratelimit.Law
		batch, most int
	}{{gcra, 1, 1010}, {gcra, 50, 22}, {window, 1, 1010}, {window, 50, 22}} {
		l := newLimiter(t, s.addr, redislimit.Options{Law: c.law, Batch: c.batch, Timeout: time.Second, Prefix: fmt.Sprint("trips", i)})
		before := s.commands()
		var all sync.WaitGroup
		for range 10 { // at the same time, so that they would all ask
			all.Go(func() {
				for range 100 {
					if !l.Take(request("x")).Allowed {
						t.Error("refused below the limit")
					}
				}
			})
		}
		all.Wait()
		if n := s.commands() - before; n > c.most || l.Counts().Local != 0 {
			t.Errorf("%s, batch %d: 1000 requests cost %d round trips, want %d at most: %+v", c.law, c.batch, n, c.most, l.Counts())
		}
	}
}

const (
	workerEnv = "REDISLIMIT_TEST_WORKER"
	rate      = 2000
	burst     = 400
	batch     = 100
)

// TestMain is a process of TestTwoProcesses where that asks for one.
func TestMain(m *testing.M) {
	addr := os.Getenv(workerEnv)
	if addr == "" {
		os.Exit(m.Run())
	}
	l, err := redislimit.New(redislimit.Options{
		Redis: rueidis.ClientOption{InitAddress: []string{addr}}, Law: ratelimit.GCRA{Rate: rate, Burst: burst}, Batch: batch,
		Processes: 2, Timeout: 5 * time.Second, Key: func(*http.Request) string { return "one" },
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var admitted, asked atomic.Int64
	r := httptest.NewRequest("GET", "/", nil)
	fmt.Println("ready")
	_, _ = fmt.Scanln()
	end := time.Now().Add(2 * time.Second)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for time.Now().Before(end) {
				asked.Add(1)
				if l.Take(r).Allowed {
					admitted.Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	all.Wait()
	c := l.Counts()
	fmt.Println(admitted.Load(), asked.Load(), c.Trips, c.Local)
}

// TestTwoProcesses holds the stated bound of the error with two processes that ask for
// far more than the limit.
func TestTwoProcesses(t *testing.T) {
	s := startRedis(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type process struct {
		in  io.WriteCloser
		out *bytes.Buffer
		cmd *exec.Cmd
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var processes [2]process
	for i := range processes {
		p := &processes[i]
		p.cmd, p.out = exec.CommandContext(ctx, self), new(bytes.Buffer)
		p.cmd.Env = append(os.Environ(), workerEnv+"="+s.addr)
		p.cmd.Stdout, p.cmd.Stderr = p.out, os.Stderr
		if p.in, err = p.cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // for both to be ready
	begun := time.Now()
	for _, p := range processes {
		fmt.Fprintln(p.in)
	}
	admitted, asked, trips := 0, 0, 0
	for _, p := range processes {
		if err := p.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		var a, n, tr, local int
		if _, err := fmt.Sscanf(p.out.String(), "ready\n%d %d %d %d", &a, &n, &tr, &local); err != nil || local != 0 {
			t.Fatalf("%q: %v, want no request decided alone", p.out, err)
		}
		admitted, asked, trips = admitted+a, asked+n, trips+tr
	}
	most := burst + int(time.Since(begun).Seconds()*rate) + 2*batch
	least := burst + 2*rate - 2*batch
	t.Logf("%d of %d admitted, bounds %d to %d, %d round trips", admitted, asked, least, most, trips)
	if admitted > most || admitted < least {
		t.Errorf("%d of %d requests were admitted, want %d to %d", admitted, asked, least, most)
	}
	if trips*50 > asked {
		t.Errorf("%d requests cost %d round trips, more than one in 50", asked, trips)
	}
}

// storm is clients that ask a limiter all the time, of one key. None may be answered but
// with 200 or 429.
type storm struct {
	admitted, slow atomic.Int64
	cancel         context.CancelFunc
	all            sync.WaitGroup
}

func startStorm(t *testing.T, l *redislimit.Limiter) *storm {
	h := chain.Must(chain.New(l.Middleware).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	ctx, cancel := context.WithCancel(t.Context())
	s := &storm{cancel: cancel}
	for range 50 {
		s.all.Go(func() {
			for ctx.Err() == nil {
				w, begun := httptest.NewRecorder(), time.Now()
				h.ServeHTTP(w, request("x"))
				if time.Since(begun) > 500*time.Millisecond { // 50 ms, on a busy machine
					s.slow.Add(1)
				}
				switch w.Code {
				case http.StatusOK:
					s.admitted.Add(1)
				case http.StatusTooManyRequests:
				default:
					t.Errorf("a request is answered with %d", w.Code)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return s
}

// end ends the storm and reports what waited for long.
func (s *storm) end(t *testing.T) {
	s.cancel()
	s.all.Wait()
	if n := s.slow.Load(); n > 0 {
		t.Errorf("%d requests took longer than half a second", n)
	}
}

// TestRedisGone kills, freezes and restarts Redis amid load. No request fails or waits
// long, none is unlimited, and Redis decides again when it is back.
func TestRedisGone(t *testing.T) {
	s := startRedis(t)
	for _, batch := range []int{1, 10} {
		var log syncBuffer
		const rate, share = 1000, 2
		l := newLimiter(t, s.addr, redislimit.Options{Law: ratelimit.GCRA{Rate: rate, Burst: 100}, Processes: share, Batch: batch,
			Log: slog.New(slog.NewTextHandler(&log, nil))})
		load := startStorm(t, l)
		phase := func(name string, d time.Duration) redislimit.Counts {
			before, a, begun := l.Counts(), load.admitted.Load(), time.Now()
			time.Sleep(d)
			c := l.Counts()
			got := load.admitted.Load() - a
			if most := 100 + 100 + int64(time.Since(begun).Seconds()*rate*1.1) + 2*int64(batch); got > most {
				t.Errorf("%s: %d were admitted, want %d at most", name, got, most)
			}
			if got < int64(d.Seconds()*rate/share/4) {
				t.Errorf("%s: %d were admitted, far below its share", name, got)
			}
			return redislimit.Counts{Trips: c.Trips - before.Trips, Failures: c.Failures - before.Failures, Local: c.Local - before.Local}
		}
		if c := phase("well", 500*time.Millisecond); c.Trips == 0 {
			t.Errorf("batch %d: well: %+v", batch, c)
		}
		s.signal(syscall.SIGSTOP)
		if c := phase("frozen", time.Second); c.Local == 0 || c.Failures > 200 {
			t.Errorf("batch %d: frozen: %+v", batch, c)
		}
		s.signal(syscall.SIGCONT)
		awaitRedis(t, l, "thawed")
		s.kill()
		if c := phase("killed", time.Second); c.Local == 0 {
			t.Errorf("batch %d: killed: %+v", batch, c)
		}
		s.start()
		awaitRedis(t, l, "restarted")
		load.end(t)
		if text := log.String(); !strings.Contains(text, "redis is away") || !strings.Contains(text, "redis is back") {
			t.Errorf("the log has %q", text)
		}
	}
}

// TestFailover kills the Redis that decides amid load. Sentinel has its replica take over,
// with its counts, and that decides.
func TestFailover(t *testing.T) {
	first := startRedis(t)
	_, port, _ := net.SplitHostPort(first.addr)
	replica := startRedis(t, "--replicaof", "127.0.0.1 "+port)
	replica.await("INFO replication\r\n", "master_link_status:up")
	conf := filepath.Join(t.TempDir(), "sentinel.conf") // Sentinel writes to it
	text := fmt.Sprintf("sentinel monitor limits 127.0.0.1 %s 1\nsentinel down-after-milliseconds limits 500\nsentinel failover-timeout limits 3000\n", port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := startRedis(t, conf, "--sentinel")
	sentinel.await("SENTINEL replicas limits\r\n", "link-status\r\n$2\r\nok") // it knows who can take over

	const rate, burst = 1000, 100
	o := redislimit.Options{Law: ratelimit.GCRA{Rate: rate, Burst: burst}, Processes: 2}
	o.Redis.Sentinel.MasterSet = "limits"
	l := newLimiter(t, sentinel.addr, o)
	load, begun := startStorm(t, l), time.Now()
	awaitRedis(t, l, "at first")
	before := replica.commands()
	first.kill()
	awaitRedis(t, l, "after the failover")
	load.end(t)
	if n := replica.commands() - before; n == 0 {
		t.Error("the replica has decided nothing")
	}
	// In memory a burst of its own at most, by Redis one and perhaps one more.
	if got, most := load.admitted.Load(), int64(3*burst+time.Since(begun).Seconds()*rate*1.1); got > most {
		t.Errorf("%d were admitted, want %d at most", got, most)
	}
	if c := l.Counts(); c.Local == 0 {
		t.Errorf("nothing was decided in memory: %+v", c)
	}
}

// awaitRedis waits until Redis decides all requests for a while.
func awaitRedis(t *testing.T, l *redislimit.Limiter, name string) {
	t.Helper()
	var was redislimit.Counts
	for range 150 {
		was = l.Counts()
		time.Sleep(200 * time.Millisecond)
		if c := l.Counts(); c.Local == was.Local && c.Trips > was.Trips && c.Failures == was.Failures {
			return
		}
	}
	t.Errorf("%s: Redis does not decide after 30 s: %+v", name, was)
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestRedisLater starts the limit before Redis.
func TestRedisLater(t *testing.T) {
	s := startRedis(t)
	s.kill()
	l := newLimiter(t, s.addr, redislimit.Options{Law: ratelimit.GCRA{Rate: 10}})
	if res := l.Take(request("x")); !res.Allowed || l.Counts().Local != 1 {
		t.Errorf("%+v, %+v", res, l.Counts())
	}
	s.start()
	for range 100 {
		if l.Take(request("x")); l.Counts().Trips > l.Counts().Failures {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("Redis does not decide: %+v", l.Counts())
}

// TestManyKeys bounds what is remembered, and mixes no clients up.
func TestManyKeys(t *testing.T) {
	s := startRedis(t)
	l := newLimiter(t, s.addr, redislimit.Options{Law: ratelimit.GCRA{Rate: 4, Per: time.Hour}, Batch: 2, Keys: 64, Timeout: 5 * time.Second})
	var all sync.WaitGroup
	for c := range 1000 {
		all.Go(func() {
			n := 0
			for range 6 {
				if l.Take(request(fmt.Sprint("client", c))).Allowed {
					n++
				}
			}
			if n > 4 || n < 2 { // what was forgotten here was taken from Redis
				t.Errorf("client %d: %d of 6 requests passed, want 2 to 4", c, n)
			}
		})
	}
	all.Wait()
	if c := l.Counts(); c.Local != 0 {
		t.Errorf("%+v", c)
	}
}

func TestOptions(t *testing.T) {
	addr := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}
	for _, o := range []redislimit.Options{
		{Law: ratelimit.GCRA{Rate: 1}},
		{Redis: addr},
		{Redis: addr, Law: ratelimit.Window{}},
		{Redis: addr, Law: ratelimit.Window{Limit: 10, Length: time.Microsecond}},
		{Redis: addr, Law: ratelimit.Window{Limit: 10}, Batch: 6},
		{Redis: addr, Law: ratelimit.GCRA{Rate: 10}, Batch: 6},
		{Redis: addr, Law: ratelimit.GCRA{Rate: 10_000_000}},
		{Redis: addr, Law: ratelimit.GCRA{Rate: 10}, Processes: -1},
		{Redis: addr, Law: ratelimit.GCRA{Rate: 10, Burst: -1}},
	} {
		if _, err := redislimit.New(o); err == nil || !strings.HasPrefix(err.Error(), "redislimit: ") {
			t.Errorf("the law %s, batch %d: %v", o.Law, o.Batch, err)
		}
	}
}

// TestAddresses refuses what rueidis could not dial, as if Redis were away.
func TestAddresses(t *testing.T) {
	unix, err := rueidis.ParseURL("unix:///run/redis.sock")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		redis rueidis.ClientOption
		ok    bool
	}{
		{rueidis.ClientOption{InitAddress: []string{"redis://127.0.0.1:1/0"}}, false},
		{rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1", "localhost"}}, false},
		{rueidis.ClientOption{InitAddress: []string{"127.0.0.1:"}}, false},
		{rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1", "[::1]:1"}}, true},
		{unix, true},
	} {
		l, err := redislimit.New(redislimit.Options{Redis: c.redis, Law: ratelimit.GCRA{Rate: 1}})
		if err == nil {
			l.Close()
		}
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "host:port") {
			t.Errorf("%q: %v", c.redis.InitAddress, err)
		}
	}
}

// TestOrder refuses a limit inside of what it must not stand behind.
func TestOrder(t *testing.T) {
	l := newLimiter(t, "127.0.0.1:1", redislimit.Options{Law: ratelimit.GCRA{Rate: 10}})
	cache := chain.Layer{Name: "cache", Wrap: func(h http.Handler) http.Handler { return h }}
	own := chain.Layer{Wrap: l.Middleware}
	if _, err := new(chain.Chain).With(cache, own).Then(http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "free of the limit") {
		t.Errorf("behind a cache: %v", err)
	}
	if _, err := new(chain.Chain).With(own, cache).Then(http.NotFoundHandler()); err != nil {
		t.Error(err)
	}
}

// BenchmarkTake has many clients that ask at the same time, by a batch and without.
func BenchmarkTake(b *testing.B) {
	s := startRedis(b)
	for _, batch := range []int{1, 50} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			l := newLimiter(b, s.addr, redislimit.Options{Law: ratelimit.GCRA{Rate: 1_000_000, Burst: 1 << 30}, Batch: batch, Timeout: time.Second})
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				r := request("x")
				for pb.Next() {
					l.Take(r)
				}
			})
		})
	}
}

// brokenLog is a log that panics.
type brokenLog struct{ slog.Handler }

func (brokenLog) Handle(context.Context, slog.Record) error { panic("broken") }

// TestLogPanics has the handler of the log panic when Redis is found to be away: requests are
// decided all the same.
func TestLogPanics(t *testing.T) {
	l := newLimiter(t, "127.0.0.1:1", redislimit.Options{Law: ratelimit.GCRA{Rate: 100}, Batch: 2, Log: slog.New(brokenLog{slog.NewTextHandler(io.Discard, nil)})})
	const requests = 5
	for n := range requests {
		if !l.Take(request("ann")).Allowed {
			t.Errorf("request %d is refused", n)
		}
	}
	if c := l.Counts(); c.Local != requests {
		t.Errorf("%+v, want all %d decided in memory", c, requests)
	}
}

// TestClockBack has Redis's clock go back an hour, as that of one that takes over may be: what a
// client has used stays used, and it waits for no longer than after a burst.
func TestClockBack(t *testing.T) {
	s := startRedis(t)
	for i, c := range []struct {
		law  ratelimit.Law
		kept string // Lua that returns what is kept as an hour later would have it
		most time.Duration
	}{
		{ratelimit.GCRA{Rate: 5, Per: time.Minute}, "string.format('%.2f', v + 3600000000)", 12 * time.Second},
		{ratelimit.Window{Limit: 5, Length: time.Hour}, "string.format('%.0f', string.match(v, '^%d+') + 3600000000) .. string.match(v, ' .*')", 2 * time.Hour},
	} {
		o := redislimit.Options{Law: c.law, Timeout: 5 * time.Second, Prefix: fmt.Sprint("clock", i)}
		before, after := newLimiter(t, s.addr, o), newLimiter(t, s.addr, o) // which remembers nothing
		for range 5 {
			if !before.Take(request("x")).Allowed {
				t.Errorf("%s: refused within the limit", c.law)
			}
		}
		if got := s.ask(fmt.Sprintf("EVAL \"local k = redis.call('KEYS', '%s*')[1] local v = redis.call('GET', k) return redis.call('SET', k, %s)\" 0\r\n", o.Prefix, c.kept)); !strings.Contains(got, "+OK") {
			t.Fatalf("%s: %s", c.law, got)
		}
		if res := after.Take(request("x")); res.Allowed || res.Retry > c.most || res.Remaining != 0 {
			t.Errorf("%s: the clock has gone back: %+v, want it refused for %s at most", c.law, res, c.most)
		}
	}
}

// TestSlowRedis has more requests of a key at a time than batches that Redis gives out within
// Options.Timeout: they wait for no longer than twice that.
func TestSlowRedis(t *testing.T) {
	s := startRedis(t)
	l := newLimiter(t, delay(t, s.addr, 20*time.Millisecond), redislimit.Options{Law: ratelimit.GCRA{Rate: 100_000}, Batch: 2, Timeout: 200 * time.Millisecond})
	for range 2 {
		l.Take(request("another")) // Redis has the script then
	}
	var longest atomic.Int64
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			begun := time.Now()
			if !l.Take(request("x")).Allowed {
				t.Error("refused below the limit")
			}
			for took := int64(time.Since(begun)); ; {
				if was := longest.Load(); took <= was || longest.CompareAndSwap(was, took) {
					return
				}
			}
		})
	}
	all.Wait()
	if took := time.Duration(longest.Load()); took > time.Second {
		t.Errorf("one has waited for %s", took)
	}
	if c := l.Counts(); c.Local == 0 || c.Failures > 1 {
		t.Errorf("%+v, want some that were decided here, and no failures", c)
	}
}

// delay returns an address whose answers are those of another one, later.
func delay(t *testing.T, to string, by time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			go func() {
				defer upstream.Close()
				_, _ = io.Copy(upstream, from)
			}()
			go func() {
				defer from.Close()
				for b := make([]byte, 64<<10); ; {
					n, err := upstream.Read(b)
					if err != nil {
						return
					}
					time.Sleep(by)
					_, _ = from.Write(b[:n])
				}
			}()
		}
	}()
	return l.Addr().String()
}
