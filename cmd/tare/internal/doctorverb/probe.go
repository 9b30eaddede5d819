package doctorverb

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/doctor/proc"
)

// probed is how long the probe waits at least, if the profile gives it the time:
// a little more than what a rule calls long.
const probed = 500 * time.Millisecond

// probe sends half a header and waits until the server gives up, or as long as
// the profile takes.
func (c *Command) probe(ctx context.Context, p *patient, g *gathering) {
	to := c.Load.URL
	if to == "" && p.hasOnePort() {
		to = p.target.Profiles.String()
	}
	u, err := url.Parse(to)
	switch {
	case to == "" || err != nil || u.Host == "":
		g.lack(doctor.HalfHeader, errors.New("the URL of the service itself, not of its profiles, is not known: --load URL"))
		return
	case u.Scheme != "http":
		g.lack(doctor.HalfHeader, errors.New("it is not sent over TLS"))
		return
	case !capture.OfThisMachine(to) && !c.Probe:
		g.lack(doctor.HalfHeader, errors.New("the server is on another machine: --probe allows it"))
		return
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	found, err := sendHalfHeader(ctx, addr, c.For.For+probed)
	g.lack(doctor.HalfHeader, err)
	g.Probe = found
}

// hasOnePort reports whether a process listens on the port of its profiles alone, so that
// it answers requests there too. Profiles with a port of their own often have a server
// of their own, without time-outs that nobody but its owner would meet.
func (p *patient) hasOnePort() bool {
	if p.target.Profiles == nil || p.pid == 0 {
		return false
	}
	ports, err := proc.Listening(p.pid)
	return err == nil && len(ports) == 1
}

// sendHalfHeader connects, sends the beginning of a request and waits for the server
// to end it.
func sendHalfHeader(ctx context.Context, addr string, most time.Duration) (*doctor.Probe, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	defer stop()
	begun := time.Now()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: half\r\nX-Half:")); err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(begun.Add(most)); err != nil {
		return nil, err
	}
	p := &doctor.Probe{Addr: addr}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	p.Answer = strings.TrimSpace(line)
	for err == nil { // until the connection ends
		_, err = in.ReadString('\n')
	}
	p.Waited = time.Since(begun)
	p.Closed = !errors.Is(err, os.ErrDeadlineExceeded)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return p, nil
}
