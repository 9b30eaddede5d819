package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/load/internal/proxy"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ raw, addr, authorization string }{
		{"http://localhost:3128", "localhost:3128", ""},
		{"http://localhost:3128/", "localhost:3128", ""},
		{"localhost:3128", "localhost:3128", ""},
		{"http://[::1]", "[::1]:80", ""},
		{"http://ada:s%3Acret@10.0.0.1:8080", "10.0.0.1:8080", "Basic YWRhOnM6Y3JldA=="},
		{"ada:secret@proxy", "proxy:80", "Basic YWRhOnNlY3JldA=="},
		{"http://ada@proxy", "proxy:80", "Basic YWRhOg=="},
	} {
		p, err := proxy.Parse(tt.raw)
		if err != nil || p.Addr != tt.addr || p.Authorization != tt.authorization {
			t.Errorf("Parse(%q): got %+v, %v; want %q and %q", tt.raw, p, err, tt.addr, tt.authorization)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"https://ada:secret@proxy", `scheme "https"`},
		{"socks5://proxy:1080", `scheme "socks5"`},
		{"http://", "no host"},
		{"http://proxy/path", "goes on"},
		{"http://proxy?secret", "goes on"},
		{"http://proxy:99999", `port "99999"`},
		{"http://ada:secret%@proxy", "malformed"},
		{"http://ada:secret@pro xy", "malformed"},
	} {
		p, err := proxy.Parse(tt.raw)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Parse(%q): got %+v, %v; want an error with %q and without the password", tt.raw, p, err, tt.want)
		}
	}
}

// exchange has one end of a connection ask for a tunnel. The other takes the request,
// answers and closes.
func exchange(t *testing.T, p *proxy.Proxy, answer string) (request string, tunnel net.Conn, err error) {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	asked := make(chan string, 1)
	go func() {
		defer server.Close()
		var all []byte
		for part := make([]byte, 1024); !strings.HasSuffix(string(all), "\r\n\r\n"); {
			n, err := server.Read(part)
			if err != nil {
				break
			}
			all = append(all, part[:n]...)
		}
		asked <- string(all)
		io.WriteString(server, answer)
	}()
	tunnel, err = p.Tunnel(t.Context(), client, "host:443")
	return <-asked, tunnel, err
}

// What a server says first comes with the proxy's answer, and is not lost.
func TestTunnel(t *testing.T) {
	p := &proxy.Proxy{Authorization: "Basic YWRhOg=="}
	request, tunnel, err := exchange(t, p, "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\nspoken first")
	if want := "CONNECT host:443 HTTP/1.1\r\nHost: host:443\r\nUser-Agent: tare\r\nProxy-Authorization: Basic YWRhOg==\r\n\r\n"; request != want {
		t.Errorf("got the request %q, want %q", request, want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(tunnel); string(said) != "spoken first" || err != nil {
		t.Errorf("got %q, %v behind the answer, want what the server said", said, err)
	}
}

func TestTunnelErrors(t *testing.T) {
	for _, tt := range []struct {
		answer, authorization, want, remedy string
	}{
		{"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "", "answered 407 Proxy Authentication Required", "NAME:PASSWORD"},
		{"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "Basic x", "answered 407", "does not accept"},
		{"HTTP/1.1 403 Forbidden\r\n\r\n", "", "answered 403 Forbidden", "does not allow"},
		{"HTTP/1.1 502 Bad Gateway\r\n\r\n", "", "answered 502", "may not reach"},
		{"HTTP/1.1 404 Not Found\r\n\r\n", "", "answered 404", "may be no proxy"},
		{"SSH-2.0-OpenSSH\r\n", "", "malformed HTTP", ""},
		{"", "", "awaiting the proxy's answer: unexpected EOF", ""},
		{"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20_000), "", "awaiting the proxy's answer", ""},
	} {
		_, tunnel, err := exchange(t, &proxy.Proxy{Authorization: tt.authorization}, tt.answer)
		if tunnel != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("answer %.40q: got %v, %v, want no tunnel and an error with %q", tt.answer, tunnel, err, tt.want)
		}
		remedy := ""
		if refusal, ok := errors.AsType[*proxy.Refusal](err); ok {
			remedy = refusal.Remedy
		}
		if !strings.Contains(remedy, tt.remedy) || (remedy == "") != (tt.remedy == "") {
			t.Errorf("answer %.40q: got the remedy %q, want %q", tt.answer, remedy, tt.remedy)
		}
	}
}

// A proxy that does not answer is waited for no longer than the context lasts.
func TestTunnelEnds(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	go io.Copy(io.Discard, server)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := new(proxy.Proxy).Tunnel(ctx, client, "host:443"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that the deadline has passed", err)
	}
}
