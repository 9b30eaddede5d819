package serve_test

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve"
)

// TestFields holds serve.Server to have every field of http.Server, with its type, and
// docs/serve.md to have a row for each that names tests which there are.
func TestFields(t *testing.T) {
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	ours := reflect.TypeFor[serve.Server]()
	for theirs := range reflect.TypeFor[http.Server]().Fields() {
		if !theirs.IsExported() {
			continue
		}
		own, ok := ours.FieldByName(theirs.Name)
		if !ok || own.Type != theirs.Type {
			t.Errorf("serve.Server has %v for http.Server's %s %v", own.Type, theirs.Name, theirs.Type)
		}
		row := regexp.MustCompile("(?m)^\\| `" + theirs.Name + "` \\| [^|]+ \\| ([^|]+) \\|$").FindSubmatch(page)
		if row == nil {
			t.Errorf("docs/serve.md has no row with tests for %s", theirs.Name)
			continue
		}
		for _, name := range regexp.MustCompile("`(Test[^`]+)`").FindAllStringSubmatch(string(row[1]), -1) {
			if !tests[name[1]] {
				t.Errorf("docs/serve.md names %s for %s: there is no such test", name[1], theirs.Name)
			}
		}
	}
}

// testNames returns the names of this package's tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return names
}

// TestDiffHTTP2Settings compares what a server with settings of its own tells a client.
func TestDiffHTTP2Settings(t *testing.T) {
	settings := func(s side) string {
		run := start(t, s, encrypted, &journal{}, func(hs *http.Server) {
			hs.Handler = http.NotFoundHandler()
			hs.MaxHeaderBytes = 4321
			hs.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 7, MaxReadFrameSize: 20000, MaxDecoderHeaderTableSize: 100, MaxReceiveBufferPerStream: 70000}
		})
		defer run.stop(t)
		conn, err := tls.Dial("tcp", run.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		head := make([]byte, 9)
		if _, err := io.ReadFull(conn, head); err != nil || head[3] != 4 {
			t.Fatalf("%s: the first frame %x, %v, want SETTINGS", s.name, head, err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head)>>8)
		if _, err := io.ReadFull(conn, body); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for ; len(body) >= 6; body = body[6:] {
			fmt.Fprintf(&text, "%d=%d ", binary.BigEndian.Uint16(body), binary.BigEndian.Uint32(body[2:]))
		}
		return text.String()
	}
	want := settings(control())
	if !strings.Contains(want, "3=7 ") {
		t.Fatalf("net/http tells %q, want 7 streams at a time", want)
	}
	for _, s := range sides() {
		if got := settings(s); got != want {
			t.Errorf("%s tells %q, want %q", s.name, got, want)
		}
	}
}
