// Package wire is what coordinators and agents say to each other, and how.
//
// Both sides hold a Link over one TLS connection. What they send is a Message, with
// histograms behind it. The kinds of messages are in the order in which a load needs them.
package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// What keeps a lost peer from being waited for.
const (
	Silence = 1750 * time.Millisecond // without a byte: the peer is lost
	Beat    = 1050 * time.Millisecond // without a frame sent: a sign of life is due; an agent at work sends a part a second
)

// MostFrame bounds a frame that a coordinator takes, in bytes.
const MostFrame = 16 << 20

// Chunk is how much of a frame must pass within Silence, in bytes.
const Chunk = 64 << 10

const wordSize = 4 // bytes of a length

// Link carries frames both ways. A frame is its length, four bytes, the highest first;
// the length of a message, likewise; the message as JSON; and, one behind the other, a part
// if it is one, and histograms, of which the message has the lengths. A frame with no message is a sign of life.
//
// Send, Sign, KeepAlive and Close are safe for concurrent use, Receive is for one goroutine.
type Link struct {
	conn net.Conn
	in   *bufio.Reader
	most int    // bytes of a frame that are taken
	buf  []byte // of the frame received last

	mu  sync.Mutex // of out
	out []byte     // reused

	// Living says that signs of life are due: to a peer that reads all the time.
	Living atomic.Bool
	due    *time.Timer // a Beat after what was sent last

	closed chan struct{}
	once   sync.Once
}

// NewLink is a link over a connection that takes frames of so many bytes, at most [MostFrame].
func NewLink(conn net.Conn, most int) *Link {
	return &Link{conn: conn, in: bufio.NewReaderSize(conn, 16<<10), most: most, due: time.NewTimer(Beat), closed: make(chan struct{})}
}

// KeepAlive sends signs of life, while they are due, until the link is closed. While something
// else is sent often enough it does not wake.
func (l *Link) KeepAlive() {
	defer l.due.Stop()
	for {
		select {
		case <-l.closed:
			return
		case <-l.due.C:
		}
		if !l.Living.Load() {
			l.due.Reset(Beat)
		} else if l.Sign() != nil {
			return
		}
	}
}

// Sign sends a sign of life.
func (l *Link) Sign() error { return l.sendFrame(nil, nil) }

func (l *Link) Close() {
	l.once.Do(func() {
		close(l.closed)
		_ = l.conn.Close() // nothing is expected of it any more
	})
}

// Send sends a message with its histograms.
func (l *Link) Send(m *Message) error {
	behind := m.Hists
	if m.Part != nil {
		behind = append([][]byte{m.Part.append(nil)}, m.Hists...)
	}
	m.Lengths = m.Lengths[:0]
	for _, b := range behind {
		m.Lengths = append(m.Lengths, len(b))
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding message %q: %w", m.Kind, err)
	}
	return l.sendFrame(text, behind)
}

func (l *Link) sendFrame(text []byte, hists [][]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := append(l.out[:0], make([]byte, 2*wordSize)...)
	b = append(b, text...)
	for _, h := range hists {
		b = append(b, h...)
	}
	if len(b)-wordSize > MostFrame {
		return fmt.Errorf("a frame of %d bytes is too large: at most %d", len(b)-wordSize, MostFrame)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-wordSize))
	binary.BigEndian.PutUint32(b[wordSize:], uint32(len(text)))
	l.out = b
	if cap(b) > Chunk {
		l.out = nil // a job or a result, of which there is one
	}
	for len(b) > 0 {
		if err := l.conn.SetWriteDeadline(time.Now().Add(Silence)); err != nil {
			return err // it is closed
		}
		n, err := l.conn.Write(b[:min(len(b), Chunk)])
		if err != nil {
			l.Close() // the peer has a part of a frame
			return err
		}
		b = b[n:]
	}
	l.due.Reset(Beat)
	return nil
}

// ErrTooLarge says that a frame was larger than is taken, and was read past.
var ErrTooLarge = errors.New("message too large")

// ErrSilent says that nothing came for too long.
var ErrSilent = fmt.Errorf("no sign of life for %v", Silence)

// Receive returns the next message, signs of life left out. What it holds is valid until
// the next call.
func (l *Link) Receive() (*Message, error) {
	for {
		text, hists, err := l.receiveFrame()
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			err = ErrSilent
		}
		if err != nil {
			return nil, err
		}
		if len(text) == 0 {
			continue
		}
		m := new(Message)
		if err := json.Unmarshal(text, m); err != nil {
			return nil, fmt.Errorf("decoding a message: %w", err)
		}
		for _, n := range m.Lengths {
			if n < 0 || n > len(hists) {
				return nil, fmt.Errorf("message %q is shorter than it says", m.Kind)
			}
			m.Hists, hists = append(m.Hists, hists[:n]), hists[n:]
		}
		if m.Kind == KindPart && len(m.Hists) > 0 {
			if m.Part, err = readPart(m.Hists[0]); err != nil {
				return nil, err
			}
			m.Hists = m.Hists[1:]
		}
		return m, nil
	}
}

func (l *Link) receiveFrame() (text, hists []byte, err error) {
	var head [2 * wordSize]byte
	if err := l.read(head[:]); err != nil {
		return nil, nil, err
	}
	whole, length := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[wordSize:])
	if whole < wordSize || length > whole-wordSize || whole > MostFrame {
		return nil, nil, errors.New("a frame's lengths do not fit: the peer does not speak tare's protocol")
	}
	n := int(whole) - wordSize
	if n > l.most {
		for left := n; left > 0; left -= Chunk {
			if err := l.read(make([]byte, min(left, Chunk))); err != nil {
				return nil, nil, err
			}
		}
		return nil, nil, fmt.Errorf("%w: %d bytes, and at most %d are taken", ErrTooLarge, n, l.most)
	}
	if cap(l.buf) < n {
		l.buf = make([]byte, n)
	}
	b := l.buf[:n]
	for at := 0; at < n; at += Chunk {
		if err := l.read(b[at:min(n, at+Chunk)]); err != nil {
			return nil, nil, err
		}
	}
	return b[:length], b[length:], nil
}

// read fills b within the time in which a peer is taken for alive.
func (l *Link) read(b []byte) error {
	if l.in.Buffered() < len(b) {
		if err := l.conn.SetReadDeadline(time.Now().Add(Silence)); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(l.in, b)
	return err
}
