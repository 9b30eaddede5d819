package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy/config"
)

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// file is one with these addresses, whose one route leads to a service.
func file(listen, service string) string {
	return fmt.Sprintf(`{"grace": "2s", "listen": %s, "upstreams": {"x": {"servers": [{"address": %q}]}}, "routes": [{"path": "/", "upstream": "x"}]}`, listen, service)
}

// running is a gateway on pipes.
type running struct {
	in      *io.PipeWriter
	replies *json.Decoder
	ended   chan error
}

func run(t *testing.T) *running {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	r := &running{inW, json.NewDecoder(outR), make(chan error, 1)}
	go func() { r.ended <- serveInput(inR, outW, "") }()
	return r
}

// give gives it a file and returns the reply.
func (r *running) give(t *testing.T, text string) reply {
	t.Helper()
	if _, err := io.WriteString(r.in, text+"\n"); err != nil {
		t.Fatal(err)
	}
	var got reply
	if err := r.replies.Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.in.Close()
	select {
	case err := <-r.ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("does not end")
	}
}

// TestReload has addresses and upstreams change, a connection stay, and a file with a
// mistake change nothing.
func TestReload(t *testing.T) {
	names := []string{"one", "two"}
	var services []string
	for _, name := range names {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
		defer s.Close()
		services = append(services, s.Listener.Addr().String())
	}
	first, second := freeAddress(t), freeAddress(t)
	g := run(t)
	if got := g.give(t, file(`[{"address": "`+first+`"}]`, services[0])); len(got.Problems) > 0 || len(got.Listening) != 1 {
		t.Fatalf("got %+v", got)
	}
	c, err := net.Dial("tcp", first)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(c)
	ask := func(want string) {
		t.Helper()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); string(body) != want {
			t.Fatalf("got %q, %v, want %q", body, err, want)
		}
	}
	ask("one")
	for text, want := range map[string]string{
		`{"listen": [], "routes": []}`: "listen: want at least one address",
		file(`[{"address": "`+first+`"}, {"address": "203.0.113.1:80"}]`, services[1]):            "listen[1].address: listen tcp",
		file(`[{"address": "`+first+`"}, {"address": "`+first+`"}]`, services[1]):                 "listen[1].address: " + first + " is there twice",
		file(`[{"address": "`+first+`", "certificate": "no.pem", "key": "no.pem"}]`, services[1]): "listen[0].certificate: open no.pem",
	} {
		if got := g.give(t, text); len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0].Error(), want) {
			t.Errorf("%s: got %+v, want %q", text, got, want)
		}
		ask("one")
	}
	if got := g.give(t, file(`[{"address": "`+first+`"}, {"address": "`+second+`"}]`, services[1])); len(got.Problems) > 0 || len(got.Listening) != 2 {
		t.Fatalf("got %+v", got)
	}
	ask("two") // by the connection that was there
	if got := g.give(t, file(`[{"address": "`+second+`"}]`, services[1])); len(got.Problems) > 0 || len(got.Listening) != 1 {
		t.Fatalf("got %+v", got)
	}
	res, err := http.Get("http://" + second)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for range 100 {
		late, err := net.Dial("tcp", first)
		if err != nil {
			break
		}
		late.Close()
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := net.Dial("tcp", first); err == nil {
		t.Errorf("%s is listened on yet", first)
	}
	g.end(t)
}

// TestEnd has a request that has begun be answered before the gateway ends.
func TestEnd(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-proceed
		fmt.Fprint(w, "done")
	}))
	defer s.Close()
	at := freeAddress(t)
	g := run(t)
	if got := g.give(t, file(`[{"address": "`+at+`"}]`, s.Listener.Addr().String())); len(got.Problems) > 0 {
		t.Fatalf("got %+v", got)
	}
	answer := make(chan string)
	go func() {
		res, err := http.Get("http://" + at)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		answer <- string(body)
	}()
	<-begun
	g.in.Close()
	time.Sleep(100 * time.Millisecond)
	close(proceed)
	if got := <-answer; got != "done" {
		t.Errorf("got %q", got)
	}
	g.end(t)
}

// certificate writes a certificate for hosts and its key to a folder.
func certificate(t *testing.T, dir string, serial int64, hosts ...string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), DNSNames: hosts}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	pk, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pk}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestTLS has a new certificate be taken with the next file.
func TestTLS(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("X-Forwarded-Proto")) }))
	defer s.Close()
	dir, at := t.TempDir(), freeAddress(t)
	g := run(t)
	for serial := range int64(2) {
		cert, key := certificate(t, dir, serial+1)
		text := file(fmt.Sprintf(`[{"address": %q, "certificate": %q, "key": %q}]`, at, cert, key), s.Listener.Addr().String())
		if got := g.give(t, text); len(got.Problems) > 0 {
			t.Fatalf("got %+v", got)
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
		res, err := client.Get("https://" + at)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		client.CloseIdleConnections()
		if got := res.TLS.PeerCertificates[0].SerialNumber.Int64(); string(body) != "https" || got != serial+1 || res.ProtoMajor != 2 {
			t.Errorf("got %q by HTTP/%d with certificate %d, want %d", body, res.ProtoMajor, got, serial+1)
		}
	}
	g.end(t)
}

// TestCertificates has each host get its own certificate at one address, other clients the first.
func TestCertificates(t *testing.T) {
	at, plain := freeAddress(t), freeAddress(t)
	var listen []string
	for i, hosts := range [][]string{{"shop.example"}, {"stock.example", "*.stock.example"}} {
		cert, key := certificate(t, t.TempDir(), int64(i+1), hosts...)
		listen = append(listen, fmt.Sprintf(`{"address": %q, "certificate": %q, "key": %q}`, at, cert, key))
	}
	g := run(t)
	if got := g.give(t, file("["+strings.Join(listen, ", ")+"]", "127.0.0.1:1")); len(got.Problems) > 0 || len(got.Listening) != 1 {
		t.Fatalf("got %+v", got)
	}
	for name, want := range map[string]int64{"shop.example": 1, "stock.example": 2, "eu.stock.example": 2, "else.example": 1, "": 1} {
		c, err := tls.Dial("tcp", at, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != want {
			t.Errorf("%q: got certificate %d, want %d", name, got, want)
		}
		c.Close()
	}
	g.end(t)
	for _, text := range []string{listen[0] + `, {"address": "` + at + `"}`, `{"address": "` + plain + `"}, {"address": "` + plain + `"}`} {
		f, err := config.Parse([]byte(file("["+text+"]", "127.0.0.1:1")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = certificates(f); err == nil || !strings.Contains(err.Error(), "is there twice") {
			t.Errorf("%s: got %v, want an address that is there twice", text, err)
		}
	}
}

// TestRedirect has an address send what comes to https, until the file has it otherwise.
func TestRedirect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.RequestURI()) }))
	defer s.Close()
	at := freeAddress(t)
	g := run(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct {
		redirect, host string
		status         int
		want           string
	}{
		{`, "redirect": "https"`, "shop.example:80", 308, "https://shop.example/a%2Fb?c=d"},
		{`, "redirect": "https:8443"`, "shop.example", 308, "https://shop.example:8443/a%2Fb?c=d"},
		{`, "redirect": "https"`, "[::1]:8080", 308, "https://[::1]/a%2Fb?c=d"},
		{"", "shop.example", 200, ""},
	} {
		if got := g.give(t, file(`[{"address": "`+at+`"`+c.redirect+`}]`, s.Listener.Addr().String())); len(got.Problems) > 0 {
			t.Fatalf("got %+v", got)
		}
		r, err := http.NewRequest("POST", "http://"+at+"/a%2Fb?c=d", strings.NewReader("order"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != c.status || res.Header.Get("Location") != c.want || c.status == 200 && string(body) != "/a%2Fb?c=d" {
			t.Errorf("%s for %s: got %d %q %q, want %d %q", c.redirect, c.host, res.StatusCode, res.Header.Get("Location"), body, c.status, c.want)
		}
	}
	g.end(t)
}

// TestConnect has CONNECT lead where the file says, by the file that was taken last.
func TestConnect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") }))
	defer s.Close()
	at, to := freeAddress(t), s.Listener.Addr().String()
	proxied, err := url.Parse("http://" + at)
	if err != nil {
		t.Fatal(err)
	}
	g := run(t)
	for _, c := range []struct{ connect, want string }{{`[]`, "Not Implemented"}, {`["` + freeAddress(t) + `"]`, "Forbidden"}, {`["` + to + `"]`, "HTTP response to HTTPS client"}} {
		if got := g.give(t, strings.Replace(file(`[{"address": "`+at+`"}]`, to), "{", `{"connect": `+c.connect+`, `, 1)); len(got.Problems) > 0 {
			t.Fatalf("got %+v", got)
		}
		// The transport asks for a tunnel, since the URL is of https. The service speaks no TLS,
		// so that the handshake fails once there is one.
		transport := &http.Transport{Proxy: http.ProxyURL(proxied), TLSHandshakeTimeout: 5 * time.Second}
		_, err := (&http.Client{Transport: transport}).Get("https://" + to)
		transport.CloseIdleConnections()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("connect: %s: got %v, want %s", c.connect, err, c.want)
		}
	}
	g.end(t)
}

// TestAdmin has the socket tell of upstreams, and the log have a line for each request.
func TestAdmin(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no modes of files")
	}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	dir, at := t.TempDir(), freeAddress(t)
	socket, log := filepath.Join(dir, "admin"), filepath.Join(dir, "log")
	text := strings.Replace(file(`[{"address": "`+at+`"}]`, s.Listener.Addr().String()), "{", fmt.Sprintf(`{"admin": %q, "access_log": %q, `, socket, log), 1)
	g := run(t)
	for range 2 { // the second one finds the socket in use, by itself
		if got := g.give(t, text); len(got.Problems) > 0 {
			t.Fatalf("got %+v", got)
		}
	}
	res, err := http.Get("http://" + at + "/path")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	res, err = client.Get("http://admin/status")
	if err != nil {
		t.Fatal(err)
	}
	var got state
	err = json.NewDecoder(res.Body).Decode(&got)
	res.Body.Close()
	if x := got.Upstreams["x"]; err != nil || len(x) != 1 || !x[0].Healthy || x[0].Requests != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if fi, err := os.Stat(socket); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", fi, err)
	}
	g.end(t)
	if lines, err := os.ReadFile(log); err != nil || bytes.Count(lines, []byte("\n")) != 1 || !bytes.Contains(lines, []byte(`"/path"`)) {
		t.Errorf("the log has %q, %v", lines, err)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is there yet")
	}
}

// TestAdminIsPrivate has the admin socket be its owner's alone from the instant at which it is there.
func TestAdminIsPrivate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: elsewhere sockets are made by the umask alone")
	}
	dir := t.TempDir()
	for i := range 200 {
		path := filepath.Join(dir, strconv.Itoa(i))
		first := make(chan os.FileMode)
		go func() {
			for {
				if fi, err := os.Stat(path); err == nil {
					first <- fi.Mode().Perm()
					return
				}
			}
		}()
		l, err := listenAdmin(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := <-first; mode != 0o600 {
			t.Fatalf("the socket began with the mode %v", mode)
		}
		l.Close()
	}
}

// TestLogOfLongRequests has requests that outlast a change of the file, and the grace of the one
// before, have their lines all the same, in the log that they began with.
func TestLogOfLongRequests(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: an open file cannot be moved")
	}
	came, goOn := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/short" {
			came <- struct{}{}
			<-goOn
		}
	}))
	defer s.Close()
	dir, at := t.TempDir(), freeAddress(t)
	log, moved := filepath.Join(dir, "log"), filepath.Join(dir, "moved")
	text := strings.Replace(file(`[{"address": "`+at+`"}]`, s.Listener.Addr().String()), `"grace": "2s"`, fmt.Sprintf(`"grace": "10ms", "admin": "none", "access_log": %q`, log), 1)
	g := run(t)
	give := func(text string) {
		t.Helper()
		if got := g.give(t, text); len(got.Problems) > 0 {
			t.Fatalf("got %+v", got)
		}
	}
	give(text)
	var all sync.WaitGroup
	get := func(path string) {
		res, err := http.Get("http://" + at + path)
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
	}
	all.Go(func() { get("/change") })
	<-came
	give(text)
	time.Sleep(100 * time.Millisecond) // far beyond the grace
	goOn <- struct{}{}
	all.Wait()
	all.Go(func() { get("/move") })
	<-came
	if err := os.Rename(log, moved); err != nil {
		t.Fatal(err)
	}
	give(text)
	time.Sleep(100 * time.Millisecond)
	goOn <- struct{}{}
	all.Wait()
	get("/short")
	give(strings.Replace(text, "10ms", "2s", 1)) // so that the end waits for the last line
	g.end(t)
	for path, want := range map[string][]string{moved: {"/change", "/move"}, log: {"/short"}} {
		lines, err := os.ReadFile(path)
		if err != nil || bytes.Count(lines, []byte("\n")) != len(want) {
			t.Errorf("%s has %q, %v, want lines of %q", path, lines, err, want)
		}
		for _, target := range want {
			if !bytes.Contains(lines, []byte(`"`+target+`"`)) {
				t.Errorf("%s has %q, want a line of %s", path, lines, target)
			}
		}
	}
}

// TestLog has lines be alike by both versions of HTTP, name the client that a trusted proxy does,
// and be there for redirects and refused requests too.
func TestLog(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	at, plain, path := freeAddress(t), freeAddress(t), filepath.Join(t.TempDir(), "log")
	text := file(fmt.Sprintf(`[{"address": %q, "h2c": true}, {"address": %q, "redirect": "https"}]`, at, plain), s.Listener.Addr().String())
	g := run(t)
	if got := g.give(t, strings.Replace(text, "{", fmt.Sprintf(`{"access_log": %q, "trusted": ["127.0.0.0/8"],
		"middlewares": [{"requestid": {}}, {"ipfilter": {"deny": ["203.0.113.0/24"]}}], `, path), 1)); len(got.Problems) > 0 {
		t.Fatalf("got %+v", got)
	}
	get := func(url, client string, h2 bool) {
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!h2)
		protocols.SetUnencryptedHTTP2(h2)
		transport := &http.Transport{Protocols: protocols}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-For", client)
		r.Header.Set("X-Request-Id", "id-7")
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	for _, h2 := range []bool{false, true} {
		get("http://"+at+"/a", "198.51.100.7", h2)
		get("http://"+at+"/b", "203.0.113.7", h2)
	}
	get("http://"+plain+"/c", "198.51.100.7", false)
	g.end(t)
	lines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"id":"id-7","client":"198.51.100.7","method":"GET","host":"` + at + `","target":"/a","route":"/","proto":"HTTP/1.1","status":200`,
		`"id":"id-7","client":"203.0.113.7","method":"GET","host":"` + at + `","target":"/b","proto":"HTTP/1.1","status":403`,
		`"id":"id-7","client":"198.51.100.7","method":"GET","host":"` + at + `","target":"/a","route":"/","proto":"HTTP/2.0","status":200`,
		`"id":"id-7","client":"203.0.113.7","method":"GET","host":"` + at + `","target":"/b","proto":"HTTP/2.0","status":403`,
		`"client":"127.0.0.1","method":"GET","host":"` + plain + `","target":"/c","proto":"HTTP/1.1","status":308`,
	} {
		if !strings.Contains(string(lines), want) {
			t.Errorf("want %s in\n%s", want, lines)
		}
	}
}

// TestLogIsNotReplies has a log not be written between the replies, as /dev/stdout would be.
func TestLogIsNotReplies(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outR.Close()
	defer outW.Close()
	g := &running{inW, json.NewDecoder(outR), make(chan error, 1)}
	go func() { g.ended <- serveInput(inR, outW, "") }()
	listen := `[{"address": "` + freeAddress(t) + `"}]`
	text := strings.Replace(file(listen, "127.0.0.1:1"), "{", fmt.Sprintf(`{"access_log": "/dev/fd/%d", `, outW.Fd()), 1)
	if got := g.give(t, text); len(got.Problems) != 1 || got.Problems[0].Path != "access_log" {
		t.Errorf("got %+v, want a problem of access_log", got)
	}
	if got := g.give(t, file(listen, "127.0.0.1:1")); len(got.Problems) > 0 {
		t.Errorf("then: got %+v", got)
	}
	g.end(t)
}

// TestLogUpstream has lines say which server answered at last, after how many attempts; not which
// one got a copy.
func TestLogUpstream(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }))
	defer s.Close()
	copied := make(chan bool, 9)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { copied <- true }))
	defer other.Close()
	at, path, well := freeAddress(t), filepath.Join(t.TempDir(), "log"), s.Listener.Addr().String()
	g := run(t)
	if got := g.give(t, fmt.Sprintf(`{"listen": [{"address": %q}], "admin": "none", "access_log": %q,
		"upstreams": {"a": {"servers": [{"address": %q}, {"address": %q, "backup": true}]}, "b": {"servers": [{"address": %q}]}},
		"routes": [{"path": "/", "upstream": "a", "shadow": {"upstream": "b"}}, {"path": "/to", "redirect": {"to": "/"}}]}`,
		at, path, freeAddress(t), well, other.Listener.Addr())); len(got.Problems) > 0 {
		t.Fatalf("got %+v", got)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, target := range []string{"/", "/to"} {
		res, err := client.Get("http://" + at + target)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	<-copied
	client.CloseIdleConnections()
	g.end(t)
	lines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	served := regexp.MustCompile(`"target":"/".*"upstream":"` + well + `","upstream_ms":[2-9][0-9]\.[0-9]{3},"attempts":2`)
	if !served.Match(lines) || strings.Count(string(lines), `"upstream"`) != 1 {
		t.Errorf("want %s in one line of\n%s", served, lines)
	}
}

// ask asks an admin end point.
func ask(t *testing.T, socket, method, target string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	r, err := http.NewRequest(method, "http://admin"+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// TestDefaultAdmin has a Unix socket be there that the file does not name, tell figures,
// and take a server out; and none if the file wants none.
func TestDefaultAdmin(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no modes of files")
	}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	dir, err := os.MkdirTemp("", "tare") // a socket's path has few bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("RUNTIME_DIRECTORY", dir)
	at, service := freeAddress(t), s.Listener.Addr().String()
	text := file(`[{"address": "`+at+`"}]`, service)
	g := run(t)
	got := g.give(t, text)
	socket := filepath.Join(dir, "admin.sock")
	if len(got.Problems) > 0 || got.Admin != socket {
		t.Fatalf("got %+v", got)
	}
	if fi, err := os.Stat(socket); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", fi, err)
	}
	get := func() int {
		t.Helper()
		res, err := http.Get("http://" + at)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := get(); got != 200 {
		t.Errorf("got %d", got)
	}
	if status, body := ask(t, socket, "GET", "/region?address=203.0.113.7"); status != 200 || body != `{"address":"203.0.113.7","region":""}`+"\n" {
		t.Errorf("the region: got %d %q", status, body)
	}
	if status, body := ask(t, socket, "GET", "/region?address=x"); status != 400 || !strings.Contains(body, "want address=") {
		t.Errorf("the region of x: got %d %q", status, body)
	}
	page := ""
	for try := 0; try < 1000 && !strings.Contains(page, "http_server_active_requests 0\n"); try++ { // it counts after the answer
		_, page = ask(t, socket, "GET", "/metrics")
	}
	for _, want := range []string{
		`tare_proxy_server_healthy{upstream="x",server="` + service + `"} 1`,
		`tare_proxy_server_attempts_total{upstream="x",server="` + service + `"} 1`,
		`tare_proxy_upstream_requests_total{upstream="x",event="came"} 1`,
		`tare_proxy_server_answers_total{upstream="x",server="` + service + `",class="2xx"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/"} 1`,
		"# TYPE tare_proxy_server_ejections_total counter",
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("the metrics lack %s:\n%s", want, page)
		}
	}
	for _, c := range []struct {
		target       string
		status, then int
	}{
		{"/drain?upstream=x&server=" + service, 204, 503},
		{"/drain?upstream=y&server=" + service, 404, 503},
		{"/undrain?upstream=x&server=" + service, 204, 200},
	} {
		if status, body := ask(t, socket, "POST", c.target); status != c.status {
			t.Errorf("%s: got %d %q", c.target, status, body)
		}
		if got := get(); got != c.then {
			t.Errorf("after %s a request got %d, want %d", c.target, got, c.then)
		}
	}
	if got := g.give(t, strings.Replace(text, "{", `{"admin": "none", `, 1)); len(got.Problems) > 0 || got.Admin != "" {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is there though the file wants none")
	}
	t.Setenv("RUNTIME_DIRECTORY", filepath.Join(dir, "gone"))
	if got := g.give(t, text); len(got.Problems) > 0 || got.Admin != "" {
		t.Errorf("a folder that is not there: got %+v", got)
	}
	g.end(t)
}

// TestH2C has HTTP/2 come without TLS where the file says so, beside HTTP/1.1.
func TestH2C(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Via")) }))
	defer s.Close()
	at := freeAddress(t)
	g := run(t)
	text := strings.Replace(file(`[{"address": "`+at+`", "h2c": true}]`, s.Listener.Addr().String()), "{", `{"name": "edge-1", `, 1)
	if got := g.give(t, text); len(got.Problems) > 0 {
		t.Fatalf("got %+v", got)
	}
	for _, h2 := range []bool{false, true} {
		protocols, want := new(http.Protocols), "1.1 edge-1"
		protocols.SetHTTP1(!h2)
		if h2 {
			protocols.SetUnencryptedHTTP2(true)
			want = "2.0 edge-1"
		}
		transport := &http.Transport{Protocols: protocols}
		res, err := (&http.Client{Transport: transport}).Get("http://" + at)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		transport.CloseIdleConnections()
		if string(body) != want {
			t.Errorf("got %q, want %q", body, want)
		}
	}
	if !takesExtended(t, at) {
		t.Error("HTTP/2 does not say that WebSockets may come by it")
	}
	if got := g.give(t, strings.Replace(text, `, "h2c": true`, "", 1)); len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Error(), "h2c and none") {
		t.Errorf("got %+v", got)
	}
	g.end(t)
}

// takesExtended reports whether a server's settings allow extended CONNECT (RFC 8441).
func takesExtended(t *testing.T, at string) bool {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	var head [9]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	settings := make([]byte, int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(c, settings); err != nil {
		t.Fatal(err)
	}
	for ; head[3] == 4 && len(settings) >= 6; settings = settings[6:] {
		if string(settings[:6]) == "\x00\x08\x00\x00\x00\x01" {
			return true
		}
	}
	return false
}

// TestHash has a password's hash be one that a file takes.
func TestHash(t *testing.T) {
	var out bytes.Buffer
	if err := printHash(strings.NewReader("secret\n"), &out); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Parse([]byte(`{"listen": [{"address": ":80"}], "routes": [], "middlewares": [{"basicauth": {"users": {"ann": ` + string(text) + `}}}]}`)); err != nil {
		t.Error(err)
	}
	if err := printHash(strings.NewReader("\n"), &out); err == nil {
		t.Error("no password has a hash")
	}
}

// TestExamine prints what is wrong.
func TestExamine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	if err := os.WriteFile(path, []byte(`{"listen": 1, "routes": []}`), 0o600); err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = w
	err = examine(path)
	os.Stdout = old
	w.Close()
	out, _ := io.ReadAll(r)
	if err != nil || !bytes.Contains(out, []byte(`"path":"listen"`)) {
		t.Errorf("got %s, %v", out, err)
	}
}
