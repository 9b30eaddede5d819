package studies_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate is one that signs itself, and its files.
func certificate(t *testing.T) (pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, is, is, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, certFile, keyFile
}

// serveTLS makes handshakes at a port, sends a byte, and returns its address.
func serveTLS(t *testing.T, c *tls.Config) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Write([]byte{'\n'}) // the client has gone if it fails
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l.Addr().String()
}

// serveNginx is serveTLS by nginx, with these settings of TLS.
func serveNginx(t *testing.T, certFile, keyFile, settings string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, dir := free.Addr().String(), t.TempDir()
	free.Close()
	var folders strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&folders, "%s_temp_path %s; ", kind, filepath.Join(dir, kind))
	}
	conf, complaints := filepath.Join(dir, "conf"), filepath.Join(dir, "error")
	text := fmt.Sprintf(`daemon off; master_process off; pid %s; events {}
http { access_log off; %s server { listen %s ssl; ssl_certificate %s; ssl_certificate_key %s; %s } }
`, filepath.Join(dir, "pid"), folders.String(), at, certFile, keyFile, settings)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nginx", "-e", complaints, "-c", conf)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for range 500 {
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			return at
		}
		time.Sleep(10 * time.Millisecond)
	}
	said, _ := os.ReadFile(complaints)
	t.Fatalf("nginx does not serve: %s", said)
	return ""
}

// P5.tls: a session may be resumed by its identifier or by a ticket. crypto/tls knows tickets alone;
// nginx knows both. OpenSSL, which does too, makes a session, comes back five times and says how
// often the session was resumed.
func TestSessionsByIdentifier(t *testing.T) {
	needsPrograms(t, "openssl", "nginx")
	pair, certFile, keyFile := certificate(t)
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS12}
	for _, c := range []struct {
		what, at, ticket string
		want             int
	}{
		{"crypto/tls by identifier", serveTLS(t, secure), "-no_ticket", 0},
		{"crypto/tls by ticket", serveTLS(t, secure), "", 5},
		{"nginx by identifier", serveNginx(t, certFile, keyFile, "ssl_protocols TLSv1.2; ssl_session_tickets off; ssl_session_cache shared:all:1m;"), "-no_ticket", 5},
	} {
		args := append([]string{"s_client", "-connect", c.at, "-tls1_2", "-reconnect"}, strings.Fields(c.ticket)...)
		out, err := exec.Command("openssl", args...).Output() // without input it ends by itself
		if fresh := bytes.Count(out, []byte("New, TLSv1.2")); err != nil || fresh == 0 {
			t.Errorf("%s: %v\n%s", c.what, err, out)
		}
		if got := bytes.Count(out, []byte("Reused, TLSv1.2")); got != c.want {
			t.Errorf("%s: resumed %d times of 5, want %d", c.what, got, c.want)
		}
	}
}

// Data may come with the first message of TLS 1.3 (0-RTT): nginx takes it where it is told to,
// crypto/tls does not.
func TestEarlyData(t *testing.T) {
	needsPrograms(t, "openssl", "nginx")
	pair, certFile, keyFile := certificate(t)
	for what, c := range map[string]struct{ at, want string }{
		"crypto/tls": {serveTLS(t, &tls.Config{Certificates: []tls.Certificate{pair}}), "Early data was not sent"},
		"nginx":      {serveNginx(t, certFile, keyFile, "ssl_protocols TLSv1.3; ssl_early_data on;"), "Early data was accepted"},
	} {
		dir := t.TempDir()
		session, data := filepath.Join(dir, "session"), filepath.Join(dir, "data")
		if err := os.WriteFile(data, []byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		first := exec.Command("openssl", "s_client", "-connect", c.at, "-tls1_3", "-sess_out", session)
		in, err := first.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		for range 500 { // the ticket comes behind the handshake
			if fi, err := os.Stat(session); err == nil && fi.Size() > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		in.Close()
		_ = first.Wait() // the second one says whether there is a session
		out, _ := exec.Command("openssl", "s_client", "-connect", c.at, "-tls1_3", "-sess_in", session, "-early_data", data).CombinedOutput()
		if !bytes.Contains(out, []byte("Reused, TLSv1.3")) || !bytes.Contains(out, []byte(c.want)) {
			t.Errorf("%s: want a session that is resumed and %q:\n%s", what, c.want, out)
		}
	}
}

// needsPrograms skips a test where one of them is missing.
func needsPrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
	}
}

// Servers that have the same keys resume one another's sessions; others do not. They share nothing
// else, as two processes would.
func TestSessionsOfSeveralServers(t *testing.T) {
	pair, _, _ := certificate(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, shared := range []bool{true, false} {
			client := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1), MaxVersion: version}
			var resumed []bool
			for i := range 2 {
				server := &tls.Config{Certificates: []tls.Certificate{pair}}
				key := [32]byte{1}
				if !shared {
					key[0] += byte(i)
				}
				server.SetSessionTicketKeys([][32]byte{key})
				resumed = append(resumed, resumes(t, client, server))
			}
			if resumed[0] || resumed[1] != shared {
				t.Errorf("%s, same keys %t: resumed %v", tls.VersionName(version), shared, resumed)
			}
		}
	}
}

// P5.tls: that a session was resumed both ends say, and the wire shows: no certificate comes.
func TestResumptionOnTheWire(t *testing.T) {
	pair, certFile, keyFile := certificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	says := map[bool]string{false: "resumed: .", true: "resumed: r"} // as nginx does
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, says[r.TLS.DidResume]) })) // to the test's end
	}()
	servers := map[string]string{"crypto/tls": l.Addr().String()}
	if _, err := exec.LookPath("nginx"); err == nil {
		servers["nginx"] = serveNginx(t, certFile, keyFile, `ssl_protocols TLSv1.2 TLSv1.3; location / { return 200 "resumed: $ssl_session_reused"; }`)
	}
	for name, at := range servers {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			client := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1), MaxVersion: version}
			var came [2]int
			for visit := range came {
				said, resumed, n := ask(t, client, at)
				came[visit] = n
				if want := visit == 1; !strings.HasSuffix(said, says[want]) || resumed != want {
					t.Errorf("%s, %s, visit %d: the client says resumed %t, the server %q", name, tls.VersionName(version), visit, resumed, said)
				}
			}
			if saved, least := came[0]-came[1], len(pair.Certificate[0]); saved < least {
				t.Errorf("%s, %s: %d bytes came, and %d for a resumed session: want at least the certificate's %d fewer", name, tls.VersionName(version), came[0], came[1], least)
			}
		}
	}
}

// ask sends a request on a new connection. It returns the answer, whether the client has resumed a
// session, and how many bytes came: tickets and answer, too, of which a resumed one has no more.
func ask(t *testing.T, client *tls.Config, at string) (answer string, resumed bool, came int) {
	t.Helper()
	nc, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Conn: nc}
	c := tls.Client(w, client)
	defer c.Close()
	if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), c.ConnectionState().DidResume, w.read
}

// wire is a connection that counts what comes.
type wire struct {
	net.Conn
	read int
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.read += n
	return n, err
}

// resumes reports whether a connection resumes a session of the client's.
func resumes(t *testing.T, client, server *tls.Config) bool {
	t.Helper()
	c, err := tls.Dial("tcp", serveTLS(t, server), client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // tickets come before
		t.Fatal(err)
	}
	return c.ConnectionState().DidResume
}
