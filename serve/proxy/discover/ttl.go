package discover

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// ttls is the least time to live of the answers that were seen.
type ttls struct {
	mu  sync.Mutex
	any bool
	ttl time.Duration
}

func (t *ttls) least() (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ttl, t.any
}

// note notes a message's.
func (t *ttls) note(message []byte) {
	ttl, ok := leastTTL(message)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.any || ttl < t.ttl {
		t.any, t.ttl = true, ttl
	}
}

// watch has what a connection to a DNS server reads be noted. Connections for packets stay
// such: by that the resolver knows them.
func (t *ttls) watch(c net.Conn) net.Conn {
	if u, ok := c.(*net.UDPConn); ok {
		return &packets{u, t}
	}
	return &stream{Conn: c, t: t}
}

type packets struct {
	*net.UDPConn
	t *ttls
}

func (p *packets) Read(b []byte) (int, error) {
	n, err := p.UDPConn.Read(b)
	p.t.note(b[:n])
	return n, err
}

// stream is a connection on which each message follows its length.
type stream struct {
	net.Conn
	t    *ttls
	read []byte // of a message and its length
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.read = append(s.read, b[:n]...)
	for len(s.read) >= 2 {
		length := 2 + int(binary.BigEndian.Uint16(s.read))
		if len(s.read) < length {
			break
		}
		s.t.note(s.read[2:length])
		s.read = s.read[length:]
	}
	return n, err
}

// Sizes of parts of a message (RFC 1035, section 4.1).
const (
	headLen     = 12
	questionLen = 4  // behind the name
	recordLen   = 10 // behind the name, before the data
)

// leastTTL returns the least time to live of a message's answers; there is none of a
// message without answers, or of one that cannot be read.
func leastTTL(m []byte) (least time.Duration, ok bool) {
	if len(m) < headLen {
		return 0, false
	}
	questions, answers := binary.BigEndian.Uint16(m[4:]), binary.BigEndian.Uint16(m[6:])
	rest := m[headLen:]
	for range questions {
		rest = skipName(rest)
		if len(rest) < questionLen {
			return 0, false
		}
		rest = rest[questionLen:]
	}
	for i := range answers {
		rest = skipName(rest)
		if len(rest) < recordLen {
			return 0, false
		}
		seconds, length := binary.BigEndian.Uint32(rest[4:]), int(binary.BigEndian.Uint16(rest[8:]))
		if seconds>>31 == 1 { // RFC 2181, section 8
			seconds = 0
		}
		if ttl := time.Duration(seconds) * time.Second; i == 0 || ttl < least {
			least = ttl
		}
		if rest = rest[recordLen:]; len(rest) < length {
			return 0, false
		}
		rest = rest[length:]
	}
	return least, answers > 0
}

// skipName returns what follows a name; nothing if that goes on beyond the end.
func skipName(b []byte) []byte {
	for len(b) > 0 {
		switch n := int(b[0]); {
		case n == 0:
			return b[1:]
		case n >= 0xc0: // it goes on elsewhere
			return b[min(2, len(b)):]
		case n >= 0x40:
			return nil
		default:
			b = b[min(1+n, len(b)):]
		}
	}
	return nil
}
