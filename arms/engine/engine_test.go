package main_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/engine/answers"
	"github.com/tarehq/tare/arms/pages"
)

// start builds a program, runs it in a directory of its own and returns its URL.
func start(t *testing.T, pkg string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, pkg).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	cmd.Env = append(os.Environ(), "TARE_ADDR="+addr, "TARE_CONTROL=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = cmd.Wait()
	}
	for range 1000 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			t.Cleanup(stop)
			return "http://" + addr
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	t.Fatalf("%s does not accept: %s", pkg, &stderr)
	return ""
}

type answer struct{ status, contentType, length, body string }

// ask sends one request and reads the answer whole.
func ask(t *testing.T, method, url, body string) answer {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.Status, res.Header.Get("Content-Type"), res.Header.Get("Content-Length"), string(got)}
}

// TestNginxServesPages has nginx serve both sets of pages, compressed where that is asked.
func TestNginxServesPages(t *testing.T) {
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not installed")
	}
	for _, all := range [][]pages.Page{pages.All(), pages.Files()} {
		args := []string{"--serve", "pages", "--gzip", "5"}
		if all[0].Path == "/1k.txt" {
			args = []string{"--serve", "files"}
		}
		url := start(t, "./nginx", args...)
		for _, p := range all {
			if got := ask(t, "GET", url+p.Path, ""); got.status != "200 OK" || got.contentType != p.Type || got.body != string(p.Body) {
				t.Errorf("%s: %s, %q, %d bytes", p.Path, got.status, got.contentType, len(got.body))
			}
			res, err := http.Get(url + p.Path) // asks for gzip, and unpacks it
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if want := len(args) == 4 && p.Type != pages.JPEG && len(p.Body) > 1024; err != nil || string(body) != string(p.Body) || res.Uncompressed != want {
				t.Errorf("%s by gzip: %d bytes, %v, compressed %t, want %t", p.Path, len(body), err, res.Uncompressed, want)
			}
		}
	}
}

// TestNginxShakesHands has nginx speak the version that is asked for, and resume a session by a
// ticket unless it has none.
func TestNginxShakesHands(t *testing.T) {
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not installed")
	}
	for words, want := range map[string]struct {
		version uint16
		resumed bool
	}{
		"1.2": {tls.VersionTLS12, true}, "1.2,no-tickets": {tls.VersionTLS12, false},
		"1.3": {tls.VersionTLS13, true}, "1.3,no-tickets": {tls.VersionTLS13, false},
	} {
		url := strings.Replace(start(t, "./nginx", "--tls", "--handshake", words), "http://", "https://", 1)
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(1), NextProtos: []string{"http/1.1"},
		}}
		for visit := range 2 {
			res, err := (&http.Client{Transport: transport}).Get(url + "/ping")
			if err != nil {
				t.Fatalf("%s: %v", words, err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || string(body) != `{"message":"pong"}` || res.Header.Get("Content-Type") != answers.JSON {
				t.Errorf("%s: got %q of %q, %v", words, body, res.Header.Get("Content-Type"), err)
			}
			if got := res.TLS; got.Version != want.version || got.DidResume != (want.resumed && visit == 1) {
				t.Errorf("%s, visit %d: %s, resumed %t", words, visit, tls.VersionName(got.Version), got.DidResume)
			}
		}
	}
}

// TestNginxSpeaksHTTP2 has nginx answer by HTTP/2, with and without TLS.
func TestNginxSpeaksHTTP2(t *testing.T) {
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not installed")
	}
	for _, flag := range []string{"--tls", "--h2c"} {
		url := start(t, "./nginx", flag)
		transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		transport.Protocols.SetHTTP2(true)
		if flag == "--tls" {
			url = strings.Replace(url, "http://", "https://", 1)
		} else {
			transport.Protocols.SetUnencryptedHTTP2(true)
		}
		res, err := (&http.Client{Transport: transport}).Get(url + "/plain")
		if err != nil {
			t.Fatalf("%s: %v", flag, err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		transport.CloseIdleConnections()
		if err != nil || res.ProtoMajor != 2 || string(body) != "hello" {
			t.Errorf("%s: got %q by %s, %v", flag, body, res.Proto, err)
		}
	}
}

// TestTLS asks each server by TLS.
func TestTLS(t *testing.T) {
	for _, name := range []string{"nethttp", "serve", "serve-reuse"} {
		url := strings.Replace(start(t, ".", "--server", name, "--tls"), "http://", "https://", 1)
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		res, err := (&http.Client{Transport: transport}).Get(url + "/plain")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		transport.CloseIdleConnections()
		if err != nil || res.ProtoMajor != 1 || string(body) != "hello" {
			t.Errorf("%s: got %q by %s, %v", name, body, res.Proto, err)
		}
	}
}

func TestServersAnswerAlike(t *testing.T) {
	echo := strings.Repeat("0123456789abcdef", 64)
	tests := []struct {
		method, path, body string
		want               answer
	}{
		{"GET", "/plain", "", answer{"200 OK", answers.Text, "5", "hello"}},
		{"GET", "/json", "", answer{"200 OK", answers.JSON, "1024", string(answers.Object())}},
		{"GET", "/page", "", answer{"200 OK", answers.Text, "65536", string(answers.Page())}},
		{"GET", "/other", "", answer{"404 Not Found", answers.Text, "19", answers.NotFound}},
		{"POST", "/echo", echo, answer{"200 OK", answers.Text, "1024", echo}},
		{"POST", "/count", strings.Repeat(echo, 64), answer{"200 OK", answers.Text, "5", "65536"}},
	}
	for name, arm := range map[string][]string{
		"nethttp":     {".", "--server", "nethttp"},
		"serve":       {".", "--server", "serve"},
		"serve-reuse": {".", "--server", "serve-reuse"},
		"nginx":       {"./nginx"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("nginx"); name == "nginx" && err != nil {
				t.Skip("nginx is not installed")
			}
			url := start(t, arm[0], arm[1:]...)
			for _, tt := range tests {
				if name == "nginx" && tt.method == "POST" {
					continue // it runs no handler
				}
				if got := ask(t, tt.method, url+tt.path, tt.body); got != tt.want {
					t.Errorf("%s %s: got %.200q, want %.200q", tt.method, tt.path, got, tt.want)
				}
			}
		})
	}
}
