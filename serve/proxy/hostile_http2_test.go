package proxy_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tarehq/tare/serve/client/breaker"
	"github.com/tarehq/tare/serve/proxy"
)

// The types of frames (RFC 9113, section 6), and their flags.
const (
	frameHeaders, frameSettings, frameGoAway = 1, 4, 7
	flagEnd, flagEndHeaders, flagAck         = 1, 4, 1
)

// frames writes frames of HTTP/2.
type frames struct{ io.Writer }

func (f frames) send(kind, flags byte, stream uint32, payload string) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	_, _ = f.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...)) // who asked may have gone
}

// status sends a head that is a status alone.
func (f frames) status(stream uint32, status string, flags byte) {
	f.send(frameHeaders, flags|flagEndHeaders, stream, "\x00\x07:status"+string(rune(len(status)))+status)
}

// upstreamFrames has answer write the frames that follow each request, by HTTP/2 without TLS. It
// returns its address, and how many connections came.
func upstreamFrames(t *testing.T, answer func(f frames, stream uint32)) (string, *atomic.Int64) {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	conns := new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go answerFrames(c, answer)
		}
	}()
	return l.Addr().String(), conns
}

func answerFrames(c net.Conn, answer func(f frames, stream uint32)) {
	defer c.Close()
	in, out := bufio.NewReader(c), frames{c}
	if _, err := in.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); err != nil {
		return
	}
	out.send(frameSettings, 0, 0, "")
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		if _, err := in.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2])); err != nil {
			return
		}
		switch stream := binary.BigEndian.Uint32(head[5:]); {
		case head[3] == frameSettings && head[4]&flagAck == 0:
			out.send(frameSettings, flagAck, 0, "")
		case head[3] == frameHeaders:
			answer(out, stream)
		}
	}
}

// TestBadAnswersHTTP2 has a client get 502 for what is no answer by HTTP/2.
func TestBadAnswersHTTP2(t *testing.T) {
	for name, answer := range map[string]func(f frames, stream uint32){
		"the status 7":     func(f frames, stream uint32) { f.status(stream, "7", flagEnd) },
		"the status -200":  func(f frames, stream uint32) { f.status(stream, "-200", flagEnd) },
		"the status 99999": func(f frames, stream uint32) { f.status(stream, "99999", flagEnd) },
		"informational answers without end": func(f frames, stream uint32) {
			for range 200 {
				f.status(stream, "103", 0)
			}
			f.status(stream, "200", flagEnd)
		},
	} {
		address, _ := upstreamFrames(t, answer)
		url, _ := front(t, proxy.Options{}, proxy.PoolOptions{Scheme: proxy.UnencryptedHTTP2}, address)
		for range 2 {
			if res, _ := get(t, url); res.StatusCode != http.StatusBadGateway {
				t.Errorf("%s: got %d, want 502", name, res.StatusCode)
			}
		}
	}
}

// TestGoAwayForEver has a server that ends each connection at once be asked by so many
// connections and no more.
func TestGoAwayForEver(t *testing.T) {
	address, conns := upstreamFrames(t, func(f frames, _ uint32) { f.send(frameGoAway, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00") })
	url, _ := front(t, proxy.Options{}, proxy.PoolOptions{Scheme: proxy.UnencryptedHTTP2, Eject: breaker.Options{Consecutive: -1}}, address)
	for _, r := range []*http.Request{must(http.NewRequest("GET", url, nil)), must(http.NewRequest("POST", url, strings.NewReader("an order")))} {
		before := conns.Load()
		if res, _ := ask(t, r); res.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: got %d, want 502", r.Method, res.StatusCode)
		}
		if n := conns.Load() - before; n > 101 {
			t.Errorf("%s: %d connections for one request, want 101 at most", r.Method, n)
		}
	}
}
