package serve_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// h2frame is a frame of HTTP/2 (RFC 9113, 4.1).
type h2frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// readFrame reads a frame whole.
func readFrame(r io.Reader) (f h2frame, err error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(r, head); err != nil {
		return f, err
	}
	f = h2frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:])}
	f.payload = make([]byte, binary.BigEndian.Uint32(head)>>8)
	_, err = io.ReadFull(r, f.payload)
	return f, err
}

// bytes returns the frame as it is sent.
func (f h2frame) bytes() []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(f.payload))<<8|uint32(f.kind))
	head = append(head, f.flags)
	return append(binary.BigEndian.AppendUint32(head, f.stream), f.payload...)
}

// String tells of a frame what the settings of a server decide.
func (f h2frame) String() string {
	switch {
	case f.kind == 1: // HEADERS; 0x88 is :status 200 in HPACK's static table
		before, _, _ := bytes.Cut(f.payload, []byte{0x88})
		return fmt.Sprintf("answer after %x", before)
	case f.kind == 4 && f.flags&1 == 0:
		text := "settings"
		for p := f.payload; len(p) >= 6; p = p[6:] {
			text += fmt.Sprintf(" %d=%d", binary.BigEndian.Uint16(p), binary.BigEndian.Uint32(p[2:]))
		}
		return text
	case f.kind == 6 && f.flags&1 == 0:
		return "ping"
	case f.kind == 8:
		return fmt.Sprintf("window of %d more by %d", f.stream, binary.BigEndian.Uint32(f.payload))
	}
	return fmt.Sprintf("frame %d", f.kind)
}

// h2setting is what one field of http.HTTP2Config does.
type h2setting struct {
	field  string
	config http.HTTP2Config
	tls    *tls.Config // the client's; nil: the usual one
	send   []h2frame   // after the preface
	await  string      // how the frame begins that tells; "end"; or how a note of the handler's or of CountError's does
	want   string      // what it has to hold
}

func h2settings() []h2setting {
	get := h2frame{1, 5, 1, []byte("\x82\x87\x84\x01\x01a")}         // GET https://a/
	big := h2frame{1, 5, 1, []byte("\x82\x87\x01\x01a\x04\x04/big")} // never ends by itself
	windows := []h2frame{{4, 0, 0, []byte("\x00\x04\x7f\xff\xff\xff")}, {8, 0, 0, []byte("\x7f\xff\x00\x00")}}
	const soon = 50 * time.Millisecond
	return []h2setting{
		{"MaxConcurrentStreams", http.HTTP2Config{MaxConcurrentStreams: 7}, nil, nil, "settings", " 3=7"},
		{"MaxDecoderHeaderTableSize", http.HTTP2Config{MaxDecoderHeaderTableSize: 100}, nil, nil, "settings", " 1=100"},
		{"MaxEncoderHeaderTableSize", http.HTTP2Config{MaxEncoderHeaderTableSize: 100}, nil, []h2frame{get}, "answer", "3f45"}, // RFC 7541, 6.3
		{"MaxReadFrameSize", http.HTTP2Config{MaxReadFrameSize: 20000}, nil, nil, "settings", " 5=20000"},
		{"MaxReceiveBufferPerConnection", http.HTTP2Config{MaxReceiveBufferPerConnection: 70000}, nil, nil, "window of 0", "by 4465"},
		{"MaxReceiveBufferPerStream", http.HTTP2Config{MaxReceiveBufferPerStream: 70000}, nil, nil, "settings", " 4=70000"},
		{"SendPingTimeout", http.HTTP2Config{SendPingTimeout: soon}, nil, nil, "ping", ""},
		{"PingTimeout", http.HTTP2Config{SendPingTimeout: soon, PingTimeout: soon}, nil, nil, "end", " after ping"},
		{"WriteByteTimeout", http.HTTP2Config{WriteByteTimeout: soon}, nil, append(windows, big), "a write failed", ""},
		{"PermitProhibitedCipherSuites", http.HTTP2Config{PermitProhibitedCipherSuites: true},
			&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}}, []h2frame{get}, "answer", ""},
		{"CountError", http.HTTP2Config{}, nil, []h2frame{{6, 0, 0, []byte("short")}}, "counted", "frame_ping_length"},
	}
}

// observe starts a server with the setting and returns what tells of it, "in vain" if that does
// not come in time.
func (x h2setting) observe(t *testing.T, s side) string {
	notes := make(chan string, 100)
	run := start(t, s, encrypted, &journal{}, func(hs *http.Server) {
		config := x.config
		if x.field == "CountError" {
			config.CountError = func(kind string) { notes <- "counted " + kind }
		}
		hs.HTTP2, hs.MaxHeaderBytes = &config, 4321
		hs.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for r.URL.Path == "/big" {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					notes <- "a write failed"
					return
				}
			}
		})
	})
	defer run.stop(t)
	config := &tls.Config{}
	if x.tls != nil {
		config = x.tls.Clone()
	}
	config.InsecureSkipVerify, config.NextProtos = true, []string{"h2"}
	conn, err := tls.Dial("tcp", run.addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const most = 10 * time.Second // less than the defaults of PingTimeout and of serve's WriteByteTimeout
	conn.SetDeadline(time.Now().Add(most))
	hello := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), h2frame{kind: 4}.bytes()...)
	for _, f := range x.send {
		hello = append(hello, f.bytes()...)
	}
	if _, err := conn.Write(hello); err != nil {
		t.Fatal(err)
	}
	if x.await == "a write failed" || x.await == "counted" { // and nothing is read
		select {
		case note := <-notes:
			return note
		case <-time.After(most):
			return "in vain"
		}
	}
	for last := "nothing"; ; {
		f, err := readFrame(conn)
		switch {
		case os.IsTimeout(err):
			return "in vain"
		case err != nil:
			return "end after " + last
		case strings.HasPrefix(f.String(), x.await):
			return f.String()
		}
		last = f.String()
	}
}

// TestDiffHTTP2Settings compares what each field of http.HTTP2Config does, and holds docs/serve.md
// to have a row for each.
func TestDiffHTTP2Settings(t *testing.T) {
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	all := h2settings()
	for f := range reflect.TypeFor[http.HTTP2Config]().Fields() {
		if !regexp.MustCompile("(?m)^\\| `" + f.Name + "` \\|").Match(page) {
			t.Errorf("docs/serve.md has no row for HTTP2Config.%s", f.Name)
		}
		tested := slices.ContainsFunc(all, func(x h2setting) bool { return x.field == f.Name })
		if !tested && f.Name != "StrictMaxConcurrentRequests" { // a transport's
			t.Errorf("HTTP2Config.%s is not tested", f.Name)
		}
	}
	for _, x := range all {
		t.Run(x.field, func(t *testing.T) {
			t.Parallel() // each has servers of its own, and waits
			want := x.observe(t, control())
			if !strings.HasPrefix(want, x.await) || !strings.Contains(want, x.want) {
				t.Fatalf("net/http: got %q, want %q with %q", want, x.await, x.want)
			}
			for _, s := range sides() {
				if got := x.observe(t, s); got != want {
					t.Errorf("%s: got %q, want %q", s.name, got, want)
				}
			}
		})
	}
}
