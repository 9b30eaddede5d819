package discover_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy"
	"github.com/tarehq/tare/serve/proxy/discover"
)

// The types of records.
const (
	typeA, typeAAAA, typeSRV = 1, 28, 33
)

// record is an answer of the server.
type record struct {
	kind uint16
	ttl  uint32
	data []byte
}

func a(addr string, ttl uint32) record {
	ip := netip.MustParseAddr(addr)
	if ip.Is4() {
		return record{typeA, ttl, ip.AsSlice()}
	}
	return record{typeAAAA, ttl, ip.AsSlice()}
}

func srv(priority, weight, port uint16, target string, ttl uint32) record {
	data := binary.BigEndian.AppendUint16(nil, priority)
	data = binary.BigEndian.AppendUint16(data, weight)
	data = binary.BigEndian.AppendUint16(data, port)
	return record{typeSRV, ttl, append(data, name(target)...)}
}

// name is one as messages have it.
func name(s string) (b []byte) {
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0)
}

// server answers questions by UDP and TCP on one port of loopback.
type server struct {
	mu      sync.Mutex
	records map[string][]record // by name, with its dot
	broken  bool                // it fails
	short   bool                // by UDP it says that its answers are too long
	asked   map[string]int
}

func (s *server) set(records map[string][]record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = records
}

func (s *server) count(network string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[network]
}

// start returns the server's address.
func (s *server) start(t *testing.T) string {
	t.Helper()
	s.asked = map[string]int{}
	for range 20 { // a port may be free for one of them alone
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		pc, err := net.ListenPacket("udp", l.Addr().String())
		if err != nil {
			l.Close()
			continue
		}
		t.Cleanup(func() { l.Close(); pc.Close() })
		go s.packets(pc)
		go s.streams(l)
		return l.Addr().String()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return ""
}

func (s *server) packets(pc net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = pc.WriteTo(s.answer(buf[:n], "udp"), from)
	}
}

func (s *server) streams(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			var length [2]byte
			for {
				if _, err := io.ReadFull(c, length[:]); err != nil {
					return
				}
				question := make([]byte, binary.BigEndian.Uint16(length[:]))
				if _, err := io.ReadFull(c, question); err != nil {
					return
				}
				answer := s.answer(question, "tcp")
				out := append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)
				_, _ = c.Write(out[:5]) // in pieces, as networks do
				_, _ = c.Write(out[5:])
			}
		}()
	}
}

// answer answers a message of one question.
func (s *server) answer(m []byte, network string) []byte {
	end := 12
	var labels []string
	for m[end] != 0 {
		labels = append(labels, string(m[end+1:end+1+int(m[end])]))
		end += 1 + int(m[end])
	}
	end++
	kind := binary.BigEndian.Uint16(m[end:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[network]++
	records, known := s.records[strings.Join(labels, ".")+"."]
	out := append([]byte{}, m[:end+4]...)
	flags := uint16(0x8580) // an answer with authority; recursion is there
	n := uint16(0)
	switch {
	case s.broken:
		flags |= 2 // the server failed
	case !known:
		flags |= 3 // no such name
	case s.short && network == "udp":
		flags |= 0x0200
	default:
		for _, r := range records {
			if r.kind != kind {
				continue
			}
			n++
			out = append(out, 0xc0, 12) // the question's name
			out = binary.BigEndian.AppendUint16(out, r.kind)
			out = binary.BigEndian.AppendUint16(out, 1)
			out = binary.BigEndian.AppendUint32(out, r.ttl)
			out = binary.BigEndian.AppendUint16(out, uint16(len(r.data)))
			out = append(out, r.data...)
		}
	}
	binary.BigEndian.PutUint16(out[2:], flags)
	binary.BigEndian.PutUint16(out[4:], 1)
	binary.BigEndian.PutUint16(out[6:], n)
	binary.BigEndian.PutUint16(out[8:], 0)
	binary.BigEndian.PutUint16(out[10:], 0)
	return out
}

func addresses(servers []proxy.Server) string {
	var all []string
	for _, s := range servers {
		text := s.Address
		if s.Weight > 0 {
			text += fmt.Sprintf("*%d", s.Weight)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// TestLookup is the table of what records make, by UDP and by TCP.
func TestLookup(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		s := &server{short: network == "tcp", records: map[string][]record{
			"shop.example.":      {a("192.0.2.7", 60), a("192.0.2.5", 20), a("2001:db8::1", 90)},
			"quick.example.":     {a("192.0.2.7", 0)},
			"slow.example.":      {a("192.0.2.7", 1<<31|5), a("192.0.2.8", 7)},
			"long.example.":      {a("192.0.2.7", 86400)},
			"empty.example.":     {},
			"none.example.":      {srv(0, 0, 0, ".", 60)},
			"_http._tcp.x.test.": {srv(5, 10, 8080, "a.x.test.", 60), srv(5, 40, 8081, "b.x.test.", 60), srv(9, 1, 8082, "c.x.test.", 60)},
			"a.x.test.":          {a("192.0.2.1", 11)}, "b.x.test.": {a("192.0.2.2", 60)}, "c.x.test.": {a("192.0.2.3", 3)},
			"_half._tcp.x.test.": {srv(1, 0, 8080, "gone.x.test.", 60), srv(1, 0, 8080, "b.x.test.", 60)},
			"_odd._tcp.x.test.":  {srv(1, 0, 8080, "gone.x.test.", 60)},
		}}
		at := s.start(t)
		for _, c := range []struct {
			d    discover.DNS
			want string
			ttl  time.Duration
			err  string
		}{
			{discover.DNS{Name: "shop.example.", Port: 80}, "192.0.2.5:80 192.0.2.7:80 [2001:db8::1]:80", 20 * time.Second, ""},
			{discover.DNS{Name: "quick.example.", Port: 80}, "192.0.2.7:80", time.Second, ""},
			{discover.DNS{Name: "quick.example.", Port: 80, Least: time.Minute}, "192.0.2.7:80", time.Minute, ""},
			{discover.DNS{Name: "slow.example.", Port: 80, Least: time.Millisecond}, "192.0.2.7:80 192.0.2.8:80", time.Millisecond, ""},
			{discover.DNS{Name: "long.example.", Port: 80}, "192.0.2.7:80", 5 * time.Minute, ""},
			{discover.DNS{Name: "192.0.2.9", Port: 80}, "192.0.2.9:80", 30 * time.Second, ""},
			{discover.DNS{Name: "_http._tcp.x.test."}, "192.0.2.1:8080*25 192.0.2.2:8081*100", 11 * time.Second, ""},
			{discover.DNS{Name: "_half._tcp.x.test."}, "192.0.2.2:8080*1", time.Minute, ""},
			{discover.DNS{Name: "none.example."}, "", 0, "looking up none.example.: "},
			{discover.DNS{Name: "empty.example.", Port: 80}, "", 0, "no such host"},
			{discover.DNS{Name: "absent.example.", Port: 80}, "", 0, "no such host"},
			{discover.DNS{Name: "_odd._tcp.x.test."}, "", 0, "gone.x.test.:8080: "},
		} {
			c.d.Server = at
			servers, ttl, err := c.d.Lookup(t.Context())
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s, %s: got %v, want %q", network, c.d.Name, err, c.err)
			}
			if got := addresses(servers); got != c.want || ttl != c.ttl {
				t.Errorf("%s, %s: got %s for %s, want %s for %s", network, c.d.Name, got, ttl, c.want, c.ttl)
			}
		}
		if s.count(network) == 0 {
			t.Errorf("nothing was asked by %s", network)
		}
	}
}

// TestWatch has servers be found anew when their records are no longer good, and those
// that were found last stay when the name server fails.
func TestWatch(t *testing.T) {
	s := &server{records: map[string][]record{"shop.example.": {a("192.0.2.1", 0)}}}
	d := discover.DNS{Name: "shop.example.", Port: 80, Server: s.start(t), Least: 10 * time.Millisecond}
	ctx, cancel := context.WithCancel(t.Context())
	type event struct {
		servers string
		err     error
	}
	events := make(chan event, 1000)
	ended := make(chan struct{})
	go func() {
		d.Watch(ctx, func(servers []proxy.Server, err error) { events <- event{addresses(servers), err} })
		close(ended)
	}()
	expect := func(want string, failed bool) {
		t.Helper()
		for {
			select {
			case e := <-events:
				if e.err == nil && failed || e.err != nil && !failed {
					continue // of a moment ago
				}
				if e.servers != want {
					t.Fatalf("got %q, %v, want %q", e.servers, e.err, want)
				}
				return
			case <-time.After(20 * time.Second):
				t.Fatalf("%q was not found", want)
			}
		}
	}
	expect("192.0.2.1:80", false)
	s.set(map[string][]record{"shop.example.": {a("192.0.2.2", 0), a("192.0.2.1", 0)}})
	expect("192.0.2.1:80 192.0.2.2:80", false)
	s.set(nil)
	expect("", true)
	s.set(map[string][]record{"shop.example.": {a("192.0.2.3", 0)}})
	expect("192.0.2.3:80", false)
	cancel()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the watch does not end")
	}
}

// TestGood has a name not be looked up again while its records are good.
func TestGood(t *testing.T) {
	s := &server{records: map[string][]record{"shop.example.": {a("192.0.2.1", 3600)}}}
	d := discover.DNS{Name: "shop.example.", Port: 80, Server: s.start(t), Least: time.Millisecond}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	d.Watch(ctx, func([]proxy.Server, error) {})
	if got := s.count("udp"); got > 2 { // A and AAAA
		t.Errorf("%d questions were asked, want 2", got)
	}
}
