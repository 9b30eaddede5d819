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

// law is what a key may do, as a script takes it.
type law struct {
	script   *rueidis.Lua
	unit     time.Duration // of GCRA in which one request comes back, of a window its length
	most     int           // requests: the burst or the limit
	batch    int
	interval time.Duration // in which one request comes back
}

// grant is what a script answers.
type grant struct {
	n         int           // requests that may pass
	retry     time.Duration // none: until as many as were asked for may
	remaining int           // that could follow at once
	reset     time.Duration // until all of the limit is there again
}

// lease returns what is to be remembered of it, but for the request that asked.
func (g grant) lease(now time.Duration, l law) said {
	s := said{remaining: g.remaining, reset: now + g.reset}
	if g.n == 0 {
		s.retry = now + g.retry
		return s
	}
	s.left, s.void = g.n-1, now+time.Duration(g.n)*l.interval
	return s
}

// Each script grants all that is asked for, or nothing, and answers with the fields of
// grant. Times are in microseconds. A key goes when it says nothing any more.

// ofGCRA keeps the theoretical arrival time of the next request. It is written with two
// digits, so that what remains is rounded down with some room. It is never further ahead than
// after a burst, unless Redis's clock has gone back: all is used then, and no more.
const ofGCRA = `
local interval, burst, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local at = tonumber(redis.call('GET', KEYS[1])) or 0
at = math.min(math.max(at, now), now + burst * interval)
local function remaining() return math.floor(burst - (at - now) / interval + 0.01) end
local over = at + n * interval - now - burst * interval
if over > 0 then return {0, math.ceil(over), remaining(), math.ceil(at - now)} end
at = at + n * interval
redis.call('SET', KEYS[1], string.format('%.2f', at), 'PX', math.ceil((at - now) / 1000) + 1)
return {n, 0, remaining(), math.ceil(at - now)}
`

// ofWindow keeps when the last window with requests began, how many the one before it had,
// and how many it has. If Redis's clock has gone back, the counts are those of the window now.
const ofWindow = `
local length, limit, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local into = now % length
local start, before, current = now - into, 0, 0
local s, b, c = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+) (%d+)$')
if (tonumber(s) or 0) >= start then
  before, current = tonumber(b), tonumber(c)
elseif tonumber(s) == start - length then
  before = tonumber(c)
end
local used = current + before * (length - into) / length
local reset = 2 * length - into
if used + n > limit then
  local room, wait = limit - n, 0
  if current <= room then
    wait = length * (1 - (room - current) / before) - into
  else
    wait = length * (2 - room / current) - into
  end
  return {0, math.floor(wait) + 1, math.max(math.floor(limit - used), 0), reset}
end
current = current + n
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f', start, before, current), 'PX', math.ceil(reset / 1000))
return {n, 0, math.floor(limit - used) - n, reset}
`

// redis runs the scripts. It connects in the background and again until it is closed.
type redis struct {
	o      Options
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
	r := &redis{o: o}
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
	micros := strconv.FormatFloat(float64(l.unit)/1e3, 'f', -1, 64)
	res := l.script.Exec(ctx, client, []string{r.o.Prefix + string(sum[:16])}, []string{micros, strconv.Itoa(l.most), strconv.Itoa(l.batch)})
	said, err := res.AsIntSlice()
	switch {
	case err != nil:
		return grant{}, err
	case len(said) != 4:
		return grant{}, errors.New("redis answers the script with something else")
	}
	return grant{int(said[0]), micro(said[1]), int(said[2]), micro(said[3])}, nil
}

func micro(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
