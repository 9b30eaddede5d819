package load

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tarehq/tare/load/internal/dial"
	"github.com/tarehq/tare/load/internal/proxy"
	"github.com/tarehq/tare/load/internal/template"
	"golang.org/x/net/http/httpguts"
)

// blueprint is a compiled Target.
type blueprint struct {
	endpoint int // index into script.endpoints
	method   string
	head     bool // the method is HEAD: answers have no body
	weight   int
	scheme   string
	origin   string            // before the path, where a proxy is to read it: "http://host"
	host     template.Template // of the Host field
	path     template.Template // path and query, as sent
	header   []headerField
	body     template.Template
	tail     []byte // the body instead, when it is long and has no field: the Target's own

	plain, closing message // HTTP/1.1; closing asks the server to close
}

// headerField is one field with its value to fill.
type headerField struct {
	name  string
	value template.Template
}

// compileTarget checks t and encodes it; via may be nil. The error does not name the target.
func compileTarget(t *Target, via *proxy.Proxy, o *Options) (*blueprint, dial.Endpoint, error) {
	b := &blueprint{method: t.Method, weight: t.Weight}
	if b.method == "" {
		b.method = "GET"
	}
	if !httpguts.ValidHeaderFieldName(b.method) { // both are tokens
		return nil, dial.Endpoint{}, fmt.Errorf("method %q is not a token such as GET", t.Method)
	}
	if b.method == "CONNECT" {
		return nil, dial.Endpoint{}, errors.New("method CONNECT opens a tunnel, which has no answer to measure")
	}
	b.head = b.method == "HEAD"
	if b.weight == 0 {
		b.weight = 1
	}
	if b.weight < 0 || b.weight > maxWeight {
		return nil, dial.Endpoint{}, fmt.Errorf("weight %d is outside 0 to %d", t.Weight, maxWeight)
	}
	e, err := b.setURL(t.URL, o)
	if err != nil {
		return nil, dial.Endpoint{}, err
	}
	if via != nil {
		e = b.goThrough(via, e, o)
	}
	if err := b.setHeader(t.Header, o); err != nil {
		return nil, dial.Endpoint{}, err
	}
	if err := b.setBody(t.Body, o.Feeder); err != nil {
		return nil, dial.Endpoint{}, err
	}
	if err := b.checkRecords(o.Feeder); err != nil {
		return nil, dial.Endpoint{}, err
	}
	b.plain, b.closing = b.encode(false), b.encode(true)
	return b, e, nil
}

// setURL takes the URL apart into where to connect and what to ask for.
func (b *blueprint) setURL(raw string, o *Options) (dial.Endpoint, error) {
	scheme, rest, ok := strings.Cut(AbsoluteURL(raw), "://")
	if !ok {
		return dial.Endpoint{}, errors.New("the URL is empty: want one such as http://localhost:8080/")
	}
	authority, path := rest, "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if o.Feeder != nil && strings.Contains(authority, "{{") {
		return dial.Endpoint{}, errors.New("a field may stand in the path and the query, not in the host: list the hosts as targets of their own")
	}
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil {
		return dial.Endpoint{}, parseError(err, authority, path)
	}
	b.scheme = u.Scheme
	if err := checkAuthority(u); err != nil {
		return dial.Endpoint{}, err
	}
	if err := b.setPath(path, o.Feeder); err != nil {
		return dial.Endpoint{}, err
	}
	host, err := httpguts.PunycodeHostPort(strings.TrimSuffix(u.Host, ":"))
	if err != nil {
		return dial.Endpoint{}, fmt.Errorf("host %q: %w", u.Host, err)
	}
	b.host = template.Literal(withoutZone(host))
	return connectTo(host, u.Scheme == "https", o.Unix), nil
}

// connectTo is where requests for host ("name" or "name:port") go.
func connectTo(host string, secure bool, unix string) dial.Endpoint {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "80"
		if secure {
			port = "443"
		}
	}
	e := dial.Endpoint{Network: "tcp", Addr: net.JoinHostPort(name, port), TLS: secure}
	if secure {
		e.Host, _, _ = strings.Cut(name, "%")
	}
	if unix != "" {
		e.Network, e.Addr = "unix", unix
	}
	return e
}

// goThrough has the requests to e go through a proxy: by a tunnel, or without one by
// naming the whole URL (RFC 9112, section 3.2.2).
func (b *blueprint) goThrough(via *proxy.Proxy, e dial.Endpoint, o *Options) dial.Endpoint {
	if e.TLS || o.Protocol != HTTP1 {
		e.Tunnel = withoutZone(e.Addr)
	} else {
		b.origin = "http://" + b.host.Fill(nil)
	}
	if e.Tunnel == "" && via.Authorization != "" {
		b.header = append(b.header, headerField{"Proxy-Authorization", template.Literal(via.Authorization)})
	}
	e.Addr, e.Proxied = via.Addr, true
	return e
}

// withoutZone is host as it is sent: a zone, which stands in brackets only, names this
// machine's way to an address (RFC 6874, section 3).
func withoutZone(host string) string {
	address, rest, _ := strings.Cut(host, "%")
	if _, port, ok := strings.Cut(rest, "]"); ok {
		return address + "]" + port
	}
	return host
}

// AbsoluteURL is u with the scheme http where u has none, and the host localhost where u
// begins with a port. A URL within u's query is not u's own scheme.
func AbsoluteURL(u string) string {
	if scheme, _, ok := strings.Cut(u, "://"); u == "" || ok && !strings.ContainsAny(scheme, "/?#") {
		return u
	}
	if strings.HasPrefix(u, ":") {
		u = "localhost" + u
	}
	return "http://" + strings.TrimPrefix(u, "//")
}

// Shown is a URL as others may read it: without the user's name and password in it,
// which are not for screens and logs. Behind what is a host an at sign is the path's;
// else it may end a password that has a slash in it.
func Shown(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	u, err := url.Parse("//" + authority)
	if !ok || !strings.Contains(rest, "@") || err == nil && u.User == nil {
		return raw
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 { // a password may hold others
		return scheme + "://…" + rest[at:]
	}
	_, host, _ := strings.Cut(rest, "@")
	return scheme + "://…@" + host
}

// parseError is url.Parse's complaint without the URL, which the caller names.
func parseError(err error, authority, path string) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if strings.Contains(authority, "@") {
		return credentialsError() // its message would show the password
	}
	if strings.Contains(path, "@") { // so it would of one that has a slash in it
		return errors.New("the URL is malformed before its first slash: want a host, and a port if need be; credentials are not sent")
	}
	return fmt.Errorf("the URL is malformed: %w", err)
}

func credentialsError() error {
	return errors.New("credentials in a URL are not sent: use a header such as \"Authorization: Basic …\"")
}

func checkAuthority(u *url.URL) error {
	switch {
	case u.Scheme == "ws" || u.Scheme == "wss":
		return fmt.Errorf("scheme %q is not supported: WebSockets are not requests and answers; use http or https", u.Scheme)
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("scheme %q is not supported: use http or https", u.Scheme)
	case u.User != nil:
		return credentialsError()
	case u.Hostname() == "":
		return errors.New("the URL has no host: want one such as http://localhost:8080/")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("port %q is outside 1 to 65535", p)
		}
	}
	return nil
}

// setPath compiles path, which begins with "/", "?" or "#".
func (b *blueprint) setPath(path string, f *Feeder) error {
	path, _, _ = strings.Cut(path, "#") // a fragment stays with the client
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	t, err := template.Parse(path, f.source(), true)
	if err != nil {
		return fmt.Errorf("URL: %w", err)
	}
	b.path = t.MapLiterals(func(text string) string {
		text = template.EscapeTarget(text)
		if _, bad := url.PathUnescape(text); err == nil {
			err = bad
		}
		return text
	})
	if err != nil {
		return fmt.Errorf("the URL is malformed: %w", err)
	}
	return nil
}

// setHeader compiles the header fields. Host takes the place of the URL's.
func (b *blueprint) setHeader(fields []Field, o *Options) error {
	agent := false
	hosts := 0
	for _, h := range fields {
		if !httpguts.ValidHeaderFieldName(h.Name) {
			return fmt.Errorf("header %q: the name is not a token such as X-Request-Id", h.Name)
		}
		if !httpguts.ValidHeaderFieldValue(h.Value) {
			return fmt.Errorf("header %q: the value holds a control character", h.Name)
		}
		v, err := template.Parse(h.Value, o.Feeder.source(), false)
		if err != nil {
			return fmt.Errorf("header %q: %w", h.Name, err)
		}
		switch strings.ToLower(h.Name) {
		case "host":
			b.host = v
			if hosts++; hosts > 1 {
				return errors.New("header \"Host\" is given twice: a request has one")
			}
			continue
		case "content-length", "transfer-encoding":
			return fmt.Errorf("header %q follows from the body and cannot be set", h.Name)
		case "connection", "keep-alive", "proxy-connection", "upgrade":
			if o.Protocol != HTTP1 {
				return fmt.Errorf("header %q is about one connection, which HTTP/2 and HTTP/3 do not allow", h.Name)
			}
		case "user-agent":
			agent = true
		}
		b.header = append(b.header, headerField{name: h.Name, value: v})
	}
	if !agent {
		b.header = append(b.header, headerField{name: "User-Agent", value: template.Literal("tare")})
	}
	return nil
}

// longBody is the size from which on a body is sent from where it is, after its
// head: a second call costs less than what a copy a target would hold, and
// nothing beside the sending of so much.
const longBody = 16 << 10

// setBody compiles the body.
func (b *blueprint) setBody(body []byte, f *Feeder) (err error) {
	if len(body) >= longBody && (f == nil || !bytes.Contains(body, []byte("{{"))) {
		b.tail = body
		return nil
	}
	if b.body, err = template.Parse(string(body), f.source(), false); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

// checkRecords refuses values that would break out of the request line or a
// header field, before anything is sent.
func (b *blueprint) checkRecords(f *Feeder) error {
	cols := b.host.Columns(b.path.Columns(nil))
	for _, h := range b.header {
		cols = h.value.Columns(cols)
	}
	if len(cols) == 0 {
		return nil
	}
	slices.Sort(cols)
	cols = slices.Compact(cols)
	for i, rec := range f.table.Records {
		for _, c := range cols {
			if !httpguts.ValidHeaderFieldValue(rec[c]) {
				return f.table.At(i, fmt.Errorf("column %q holds a control character, which may stand in a body only", f.table.Columns[c]))
			}
		}
	}
	return nil
}

// dynamic reports whether the request has a field to fill.
func (b *blueprint) dynamic() bool { return b.plain.fixed == nil }
