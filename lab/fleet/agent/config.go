package agent

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
)

// Config says where an agent listens and what it may be asked to do.
type Config struct {
	Listen string // host:port; "" means 127.0.0.1 and wire.DefaultPort
	Certs  string // folder of its certificate, its key and the authority's certificate

	// Allow are the places that it may load, as host:port, host:low-high or host:*. The host
	// is compared as it is written in a URL; nothing is looked up.
	Allow []string

	// Bounds of one load. 0 takes the value in brackets.
	Rate        int           // requests a second in the open loop (100,000)
	Connections int           // (10,000)
	Duration    time.Duration // warm-up included (1 h)
	Body        int           // bytes of all targets' bodies (1 MiB)
	Message     int           // bytes of a frame (8 MiB)

	places []place
}

// place is one of Config.Allow.
type place struct {
	host      string
	low, high int // ports
}

// ReadConfig reads an agent's YAML file. Mistakes begin with file:line:column.
func ReadConfig(path string) (*Config, error) {
	data, err := shape.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the agent's configuration: %w", err)
	}
	c := new(Config)
	r := shape.NewReader(path, "agents")
	shape.Decode(r, data, configShape(), c)
	for i, text := range c.Allow {
		if _, err := parsePlace(text); err != nil {
			r.Wrong(fmt.Sprintf("allow[%d]", i), "allow: %v", err)
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); c.Listen != "" && err != nil {
		r.Wrong("listen", "listen: got %q; want an address and a port, such as 10.0.0.5:%s", c.Listen, wire.DefaultPort)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func configShape() shape.Of[Config] {
	return shape.Object("the file", []shape.Key[Config]{
		shape.Field("listen", "Address and port to listen on.", shape.Line(), func(c *Config) *string { return &c.Listen }),
		shape.Field("certs", "Folder of the agent's certificate.", shape.Line(), func(c *Config) *string { return &c.Certs }),
		shape.Field("allow", "Places that may be loaded, as host:port, host:low-high or host:*.", shape.List(shape.Line(), 1), func(c *Config) *[]string { return &c.Allow }).Must(),
		shape.Field("rate", "Most requests a second.", shape.Integer(1, 100_000_000), func(c *Config) *int { return &c.Rate }),
		shape.Field("connections", "Most connections.", shape.Integer(1, 1_000_000), func(c *Config) *int { return &c.Connections }),
		shape.Field("duration", "Longest load, its warm-up included.", shape.Duration(time.Second, 7*24*time.Hour), func(c *Config) *time.Duration { return &c.Duration }),
		shape.Field("body", "Most bytes of bodies that a load may send.", shape.Integer(1, wire.MostFrame), func(c *Config) *int { return &c.Body }),
		shape.Field("message", "Most bytes of a message.", shape.Integer(1<<10, wire.MostFrame), func(c *Config) *int { return &c.Message }),
	})
}

// fill reads the places and sets the bounds that are left out.
func (c *Config) fill() error {
	c.places = nil
	for _, text := range c.Allow {
		p, err := parsePlace(text)
		if err != nil {
			return fmt.Errorf("allow: %w", err)
		}
		c.places = append(c.places, p)
	}
	for _, d := range []struct {
		value *int
		most  int
	}{{&c.Rate, 100_000}, {&c.Connections, 10_000}, {&c.Body, 1 << 20}, {&c.Message, 8 << 20}} {
		if *d.value == 0 {
			*d.value = d.most
		}
	}
	if c.Duration == 0 {
		c.Duration = time.Hour
	}
	return nil
}

var portRange = regexp.MustCompile(`^(\d+)(?:-(\d+))?$`)

// parsePlace reads host:port, host:low-high or host:*.
func parsePlace(text string) (place, error) {
	wrong := fmt.Errorf("got %q; want host:port, host:low-high or host:*", text)
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || host == "*" {
		return place{}, wrong
	}
	p := place{host: strings.ToLower(host), low: 1, high: 65535}
	if port == "*" {
		return p, nil
	}
	m := portRange.FindStringSubmatch(port)
	if m == nil {
		return place{}, wrong
	}
	p.low, _ = strconv.Atoi(m[1]) // of digits: what is too large stays so
	if p.high = p.low; m[2] != "" {
		p.high, _ = strconv.Atoi(m[2])
	}
	if p.low < 1 || p.high < p.low || p.high > 65535 {
		return place{}, fmt.Errorf("got the ports %s of %q; want 1 to 65535, the lower one first", port, text)
	}
	return p, nil
}

// check refuses a job that is beyond what the agent is allowed.
func (c *Config) check(j *wire.Job) error {
	if len(j.Targets) == 0 || j.Connections <= 0 {
		return errors.New("the job has no target, or no number of connections")
	}
	bodies := 0
	for _, t := range j.Targets {
		host, port, err := connectsTo(t.URL)
		if err != nil {
			return fmt.Errorf("target %q: %w", load.Shown(t.URL), err)
		}
		if err := c.checkPlace(host, port); err != nil {
			return err
		}
		bodies += len(t.Body)
	}
	if j.Proxy != "" {
		host, port, err := connectsTo(j.Proxy)
		if err != nil {
			return fmt.Errorf("the proxy's URL: %w", err)
		}
		if err := c.checkPlace(host, port); err != nil {
			return err
		}
	}
	for _, b := range []struct {
		what      string
		got, most int
	}{{"connections", j.Connections, c.Connections}, {"bytes of bodies", bodies, c.Body}} {
		if b.got > b.most {
			return fmt.Errorf("%w: %d %s, and it takes at most %d", wire.ErrNotAllowed, b.got, b.what, b.most)
		}
	}
	return c.checkSchedule(j)
}

func (c *Config) checkSchedule(j *wire.Job) error {
	length := j.Duration
	if s := j.Schedule; s != nil {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
		for _, p := range s.Phases {
			if rate := max(p.From, p.To) / float64(max(1, s.Parts)); rate > float64(c.Rate) {
				return fmt.Errorf("%w: %.0f requests a second, and it takes at most %d", wire.ErrNotAllowed, rate, c.Rate)
			}
		}
		if whole, ends := s.Length(); ends && length == 0 {
			length = whole
		}
	}
	if j.WarmUp < 0 || length < 0 || length > c.Duration-min(j.WarmUp, c.Duration) {
		return fmt.Errorf("%w: %v of load and %v of warm-up, and it takes at most %v", wire.ErrNotAllowed, length, j.WarmUp, c.Duration)
	}
	return nil
}

// checkPlace refuses what the agent may not connect to.
func (c *Config) checkPlace(host string, port int) error {
	for _, p := range c.places {
		if p.host == host && p.low <= port && port <= p.high {
			return nil
		}
	}
	return fmt.Errorf("%w: the target %s is not among those of `allow`", wire.ErrNotAllowed, net.JoinHostPort(host, strconv.Itoa(port)))
}

// connectsTo is the host and port of a URL, as package load reads it: what stands before the
// path alone is looked at, since fields to fill may follow.
func connectsTo(raw string) (host string, port int, err error) {
	scheme, rest, _ := strings.Cut(load.AbsoluteURL(raw), "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil {
		return "", 0, errors.New("the URL is malformed") // the error would show a password
	}
	text := u.Port()
	switch {
	case text != "":
	case u.Scheme == "https":
		text = "443"
	default:
		text = "80"
	}
	port, err = strconv.Atoi(text)
	if err != nil || u.Hostname() == "" || strings.ContainsAny(u.Hostname(), "%{}") {
		return "", 0, errors.New("the URL names no host")
	}
	return strings.ToLower(u.Hostname()), port, nil
}
