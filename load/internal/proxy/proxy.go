// Package proxy reaches hosts through an HTTP proxy.
package proxy

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Proxy is an HTTP proxy. Safe for concurrent use.
type Proxy struct {
	Addr          string // host:port
	Authorization string // value of the field Proxy-Authorization; "" without a name and password
}

// Parse reads a proxy's URL: the scheme is http, the port 80 where there is none. It may hold
// a name and password, which no error shows.
func Parse(raw string) (*Proxy, error) {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("the URL is malformed: want one such as http://localhost:3128, and a name and password with %40 for @")
	case u.Scheme != "http":
		return nil, fmt.Errorf("scheme %q is not supported: an HTTP proxy has http://, whatever is asked for through it", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host: want one such as http://localhost:3128")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL goes on behind the host: a proxy has no path")
	}
	port := cmp.Or(u.Port(), "80")
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, fmt.Errorf("port %q is outside 1 to 65535", port)
	}
	p := &Proxy{Addr: net.JoinHostPort(u.Hostname(), port)}
	if u.User != nil {
		password, _ := u.User.Password()
		p.Authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	return p, nil
}

// Refusal is the answer of a proxy that opened no tunnel.
type Refusal struct {
	Status string // such as "403 Forbidden"
	Remedy string
}

func (r *Refusal) Error() string { return "the proxy answered " + r.Status }

// Tunnel asks the proxy at the other end of c to connect to addr, a host:port. It returns
// the tunnel, which is c or stands for it. ctx bounds the asking. c stays open whatever
// happens.
func (p *Proxy) Tunnel(ctx context.Context, c net.Conn, addr string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	ahead, err := p.ask(c, addr)
	switch {
	case !stop():
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case len(ahead) == 0:
		return c, nil
	}
	return &tunnel{Conn: c, rest: io.MultiReader(bytes.NewReader(ahead), c)}, nil
}

// tunnel is a connection of which something was read with the proxy's answer: a server may
// speak first.
type tunnel struct {
	net.Conn
	rest io.Reader
}

func (t *tunnel) Read(p []byte) (int, error) { return t.rest.Read(p) }

// maxAnswer bounds the bytes of an answer to CONNECT.
const maxAnswer = 64 << 10

// ask sends CONNECT and reads the answer. It returns what came behind that.
func (p *Proxy) ask(c net.Conn, addr string) (ahead []byte, err error) {
	fields := ""
	if p.Authorization != "" {
		fields = "Proxy-Authorization: " + p.Authorization + "\r\n"
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nUser-Agent: tare\r\n%s\r\n", addr, fields); err != nil {
		return nil, err
	}
	r := bufio.NewReader(io.LimitReader(c, maxAnswer))
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, fmt.Errorf("awaiting the proxy's answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, &Refusal{resp.Status, p.Remedy(resp.StatusCode)}
	}
	return r.Peek(r.Buffered())
}

// Remedy is what to do about an answer of the proxy's own.
func (p *Proxy) Remedy(status int) string {
	switch {
	case status == http.StatusProxyAuthRequired && p.Authorization == "":
		return "it wants a name and password: give http://NAME:PASSWORD@HOST:PORT"
	case status == http.StatusProxyAuthRequired:
		return "it does not accept the name and password in its URL"
	case status == http.StatusForbidden:
		return "it does not allow this host or port"
	case status >= 500:
		return "it may not reach the host: check the target's host and port"
	}
	return "it may be no proxy, or open no tunnels: check its address"
}
