package redislimit

import (
	"context"
	"crypto/sha256"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// law is what a key may do, as the script takes it.
type law struct {
	interval time.Duration // in which one request comes back
	burst    int
	batch    int
}

// grant is what the script answers.
type grant struct {
	n     int           // requests that may pass
	retry time.Duration // none: until as many as were asked for may
}

// lease returns what is to be remembered of it, but for the request that asked.
func (g grant) lease(now time.Duration, l law) entry {
	if g.n == 0 {
		return entry{retry: now + g.retry}
	}
	return entry{left: g.n - 1, void: now + time.Duration(g.n)*l.interval}
}

// script is GCRA. It grants all that is asked for, or nothing. Times are in microseconds;
// the key holds the theoretical arrival time of the next request, and goes when it is past.
const script = `
local interval, burst, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local at = tonumber(redis.call('GET', KEYS[1])) or 0
if at < now then at = now end
local over = at + n * interval - now - burst * interval
if over > 0 then return {0, math.ceil(over)} end
at = at + n * interval
redis.call('SET', KEYS[1], string.format('%.2f', at), 'PX', math.ceil((at - now) / 1000) + 1)
return {n, 0}
`

// redis runs the script. It connects in the background and again until it is closed.
type redis struct {
	o      Options
	script *rueidis.Lua
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	client rueidis.Client // nil: not yet
}

const reconnectAfter = 500 * time.Millisecond

// connect sets what is zero, for connections that carry nothing but limits.
func connect(o Options) *redis {
	c := &o.Redis
	c.DisableCache, c.AlwaysPipelining = true, true
	if c.ConnWriteTimeout == 0 {
		c.ConnWriteTimeout = time.Second // a frozen Redis is found then
	}
	if c.Dialer.Timeout == 0 {
		c.Dialer.Timeout = time.Second
	}
	if c.ReadBufferEachConn == 0 {
		c.ReadBufferEachConn = 16 << 10
	}
	if c.WriteBufferEachConn == 0 {
		c.WriteBufferEachConn = 16 << 10
	}
	r := &redis{o: o, script: rueidis.NewLuaScript(script)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if !r.dial() {
		go r.redial()
	}
	return r
}

// dial connects, and reports whether it needs no other try.
func (r *redis) dial() bool {
	client, err := rueidis.NewClient(r.o.Redis)
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		client.Close()
		return true
	}
	r.client = client
	return true
}

func (r *redis) redial() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-time.After(reconnectAfter):
		}
		if r.dial() {
			return
		}
	}
}

func (r *redis) close() {
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		r.client.Close()
	}
}

var errNotConnected = errors.New("redis is not connected yet")

// take asks for a batch of a key's requests. It does not end with the request that asks:
// others wait for it, too.
func (r *redis) take(key string, l law) (grant, error) {
	r.mu.Lock()
	client := r.client
	r.mu.Unlock()
	if client == nil {
		return grant{}, errNotConnected
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
	defer cancel()
	sum := sha256.Sum256([]byte(key))
	micros := strconv.FormatFloat(float64(l.interval)/1e3, 'f', -1, 64)
	res := r.script.Exec(ctx, client, []string{r.o.Prefix + string(sum[:16])}, []string{micros, strconv.Itoa(l.burst), strconv.Itoa(l.batch)})
	said, err := res.AsIntSlice()
	switch {
	case err != nil:
		return grant{}, err
	case len(said) != 2:
		return grant{}, errors.New("redis answers the script with something else")
	}
	return grant{int(said[0]), time.Duration(said[1]) * time.Microsecond}, nil
}
