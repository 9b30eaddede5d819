package load_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tarehq/tare/load"
)

// Names are looked up once, before the run's clock starts.
func TestNamesAreResolvedBefore(t *testing.T) {
	asked := nameServer(t, [4]byte{127, 0, 0, 1})
	for i, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			o, s := serve(t, i, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			// The servers' certificate is for this name.
			o.Targets[0].URL = strings.Replace(s.URL, "127.0.0.1", "example.com", 1)
			o.Connections, o.Requests, o.NewConnections = 4, 40, 0.5
			before := asked.Load()
			var then uint64
			o.Mark = func(begin bool) {
				if begin {
					then = asked.Load()
				}
			}
			if r := run(t, context.Background(), o); r.Counts.Status[2] != 40 {
				t.Errorf("got %+v, want 40 answers", r.Counts)
			}
			if got := asked.Load(); then == before || got != then {
				t.Errorf("the name server was asked %d times before the run and %d times within, want some and none", then-before, got-then)
			}
		})
	}
}

// What keeps a name from being found is told at once, by both engines alike.
func TestNameNotFound(t *testing.T) {
	nameServer(t)
	for _, p := range protocols {
		needs(t, p.engine)
		url := "http://none.example./"
		if p.tls {
			url = "https://none.example./"
		}
		r, err := load.Run(context.Background(), load.Options{Engine: p.engine, Protocol: p.protocol, Requests: 1, Targets: []load.Target{{URL: url}}})
		if r != nil || err == nil || !strings.Contains(err.Error(), "check the host's name") {
			t.Errorf("%s: got %+v and error %v, want one with a remedy", p.name, r, err)
		}
	}
}

// nameServer has names looked up at a server that knows example.com by these
// addresses, and returns how often it was asked.
func nameServer(t *testing.T, addrs ...[4]byte) *atomic.Uint64 {
	t.Helper()
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	asked := new(atomic.Uint64)
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := l.ReadFrom(buf)
			if err != nil {
				return
			}
			asked.Add(1)
			if answer, err := answerName(buf[:n], addrs); err == nil {
				l.WriteTo(answer, from)
			}
		}
	}()
	old := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = old })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", l.LocalAddr().String())
	}}
	return asked
}

// answerName is what the name server answers to a question.
func answerName(question []byte, addrs [][4]byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	switch {
	case q.Name.String() != "example.com.":
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		for _, a := range addrs {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a}})
		}
	}
	return m.Pack()
}
