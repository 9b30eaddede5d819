package config_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/metrics"
	"github.com/tarehq/tare/serve/proxy/config"
	"github.com/tarehq/tare/serve/servetest"
)

// await has a condition come true.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(what)
}

// TestHashByClient has clients behind a trusted proxy go to servers by their own addresses, not all
// to the one of the proxy's.
func TestHashByClient(t *testing.T) {
	var site config.Site
	defer site.Close()
	err := site.Take(parse(t, `{"listen": [{"address": ":8080"}], "trusted": ["192.0.2.0/24"],
		"upstreams": {"x": {"balance": "consistent_hash", "servers": [{"address": "`+service(t, "a")+`"}, {"address": "`+service(t, "b")+`"}]}},
		"routes": [{"path": "/", "upstream": "x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	by := func(client string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil) // from 192.0.2.1
		r.Header.Set("X-Forwarded-For", client)
		site.ServeHTTP(w, r)
		return w.Body.String()
	}
	served := map[string]bool{}
	for i := range 64 {
		client := fmt.Sprintf("203.0.113.%d", i)
		first := by(client)
		served[first] = true
		if again := by(client); again != first {
			t.Errorf("%s was served by %q and then by %q", client, first, again)
		}
	}
	if len(served) != 2 {
		t.Errorf("64 clients were served by %v, want both", served)
	}
}

// TestCountsByRoute has requests counted by their routes, with and without middlewares before them,
// on both engines.
func TestCountsByRoute(t *testing.T) {
	for _, before := range []string{"", `"trusted": ["127.0.0.0/8"], "middlewares": [{"requestid": {}}, {"ipfilter": {"deny": ["203.0.113.9"]}}], `} {
		counted, err := metrics.New(metrics.Options{NoRuntime: true})
		if err != nil {
			t.Fatal(err)
		}
		site := &config.Site{Metrics: counted}
		t.Cleanup(site.Close)
		err = site.Take(parse(t, `{"listen": [{"address": ":8080"}], `+before+`
			"upstreams": {"x": {"servers": [{"address": "`+service(t, "a")+`"}]}}, "routes": [{"path": "/api/{id}", "method": ["GET"], "upstream": "x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		ours, standard := servetest.NewServer(site), httptest.NewServer(site)
		t.Cleanup(ours.Close)
		t.Cleanup(standard.Close)
		for _, url := range []string{ours.URL, standard.URL} {
			for _, path := range []string{"/api/7", "/api/8", "/none"} {
				res, err := http.Get(url + path)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
			}
		}
		var page strings.Builder
		await(t, "requests stay active", func() bool { // they are counted after their answers
			page.Reset()
			_, err := counted.WriteTo(&page)
			return err == nil && strings.Contains(page.String(), "http_server_active_requests 0\n")
		})
		for _, want := range []string{
			`_count{http_request_method="GET",http_response_status_code="200",http_route="/api/{id}"} 4`,
			`_count{http_request_method="GET",http_response_status_code="404",http_route=""} 2`,
		} {
			if !strings.Contains(page.String(), want+"\n") {
				t.Errorf("before the routes %q: want %s in\n%s", before, want, &page)
			}
		}
	}
}

// TestPause has an answer that pauses for longer than its upstream's file allows break off.
func TestPause(t *testing.T) {
	going := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-going
	}))
	defer up.Close()
	defer close(going)
	url, _ := serveSite(t, parse(t, `{"listen": [{"address": ":8080"}], "routes": [{"path": "/", "upstream": "x"}],
		"upstreams": {"x": {"pause": "100ms", "servers": [{"address": "`+up.Listener.Addr().String()+`"}]}}}`))
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err == nil || string(text) != "begun" {
		t.Errorf("got %q, %v, want an answer that breaks off", text, err)
	}
}

// TestShadow has the other upstream get a copy, and the client nothing of it.
func TestShadow(t *testing.T) {
	copies := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		copies <- fmt.Sprint(r.Method, " ", r.URL.Path, " ", string(body), " ", r.Header.Get("X-Shadow"), r.Header.Get("Via"))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer other.Close()
	url, site := serveSite(t, parse(t, `{"listen": [{"address": ":8080"}], "name": "edge-1",
		"upstreams": {"a": {"servers": [{"address": "`+service(t, "a")+`"}]}, "b": {"servers": [{"address": "`+other.Listener.Addr().String()+`"}]}},
		"routes": [{"path": "/api/", "strip": "/api", "upstream": "a", "shadow": {"upstream": "b"}}]}`))
	res, err := http.Post(url+"/api/orders", "text/plain", strings.NewReader("an order"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != 200 || string(body) != "a /orders" || err != nil {
		t.Errorf("got %d %q, %v", res.StatusCode, body, err)
	}
	select {
	case got := <-copies:
		if got != "POST /orders an order 11.1 edge-1" {
			t.Errorf("the copy is %q", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("no copy came")
	}
	if c := site.Copies()["/api/"]; c.Sent != 1 || c.Dropped != 0 {
		t.Errorf("got %+v", c)
	}
}

// TestDrain has a server get no new requests, also after a file that changes others, and
// get them again.
func TestDrain(t *testing.T) {
	a, b := service(t, "a"), service(t, "b")
	text := func(weight int) *config.File {
		return parse(t, fmt.Sprintf(`{"listen": [{"address": ":8080"}], "upstreams": {"x": {"balance": "round_robin", "servers": [{"address": %q}, {"address": %q, "weight": %d}]}},
			"routes": [{"path": "/", "upstream": "x"}]}`, a, b, weight))
	}
	url, site := serveSite(t, text(1))
	seen := func() string {
		t.Helper()
		got := map[byte]bool{}
		for range 20 {
			res, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			got[body[0]] = true
		}
		return fmt.Sprint(got['a'], got['b'])
	}
	if got := seen(); got != "true true" {
		t.Errorf("at first: %s", got)
	}
	if err := site.Drain("x", a, true); err != nil {
		t.Fatal(err)
	}
	if got := seen(); got != "false true" {
		t.Errorf("a is drained: %s", got)
	}
	if err := site.Take(text(2)); err != nil {
		t.Fatal(err)
	}
	if got := seen(); got != "false true" {
		t.Errorf("a is drained, and there is another file: %s", got)
	}
	if err := site.Drain("x", a, false); err != nil {
		t.Fatal(err)
	}
	if got := seen(); got != "true true" {
		t.Errorf("a is back: %s", got)
	}
	if site.Drain("y", a, true) == nil || site.Drain("x", "z:1", true) == nil {
		t.Error("what is not there is drained")
	}
}

// TestEject has a server left alone that fails every other time, by the share that the file
// has.
func TestEject(t *testing.T) {
	var n atomic.Int64
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer half.Close()
	url, site := serveSite(t, parse(t, `{"listen": [{"address": ":8080"}], "upstreams": {"x": {"balance": "round_robin",
			"eject": {"failures": 0, "share": "40%", "least": 4, "window": "1m"}, "servers": [{"address": "`+half.Listener.Addr().String()+`"}, {"address": "`+service(t, "b")+`"}]}},
		"routes": [{"path": "/", "upstream": "x"}]}`))
	for range 30 {
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	if got := site.Status()["x"]; got[0].Healthy || got[0].Requests != 4 || !got[1].Healthy {
		t.Errorf("got %+v, want the first one left alone after 4 requests", got)
	}
}

// TestConnections has connections to a server be open before requests come, and no more than the
// file says at any time: requests beyond wait, and then get 503.
func TestConnections(t *testing.T) {
	going := make(chan struct{})
	var asked, conns atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-going
		fmt.Fprint(w, "ok")
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	url, site := serveSite(t, parse(t, `{"listen": [{"address": ":8080"}], "upstreams": {"x": {"servers": [{"address": "`+s.Listener.Addr().String()+`"}],
		"connections": {"most": 2, "warm": 2, "queue": 1, "wait": "1s"}}}, "routes": [{"path": "/", "upstream": "x"}]}`))
	await(t, "nothing is warm", func() bool { return conns.Load() == 2 })
	time.Sleep(50 * time.Millisecond) // the proxy learns of the second a moment later
	first := make(chan string, 2)
	for range 2 {
		go func() {
			res, err := http.Get(url)
			if err != nil {
				first <- err.Error()
				return
			}
			res.Body.Close()
			first <- res.Status
		}()
	}
	await(t, "two requests do not reach the server", func() bool { return asked.Load() == 2 })
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a request beyond: got %s", res.Status)
	}
	close(going)
	for range 2 {
		if got := <-first; got != "200 OK" {
			t.Errorf("got %s for one of those that were first", got)
		}
	}
	if conns.Load() != 2 || site.Counts()["x"].Busy != 1 {
		t.Errorf("%d connections, and %d attempts found none; want 2 and 1", conns.Load(), site.Counts()["x"].Busy)
	}
}

// nameserver answers every question of type A with one address, and others with nothing.
func nameserver(t *testing.T, addr string) string {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			end := 12
			for end < n && buf[end] != 0 {
				end += 1 + int(buf[end])
			}
			end += 5
			out := append([]byte{}, buf[:end]...)
			binary.BigEndian.PutUint16(out[2:], 0x8580)
			answers := uint16(0)
			if binary.BigEndian.Uint16(buf[end-4:]) == 1 {
				answers = 1
				out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
				out = append(out, net.ParseIP(addr).To4()...)
			}
			binary.BigEndian.PutUint16(out[6:], answers)
			binary.BigEndian.PutUint32(out[8:], 0)
			_, _ = pc.WriteTo(out, from)
		}
	}()
	return pc.LocalAddr().String()
}

// TestDNS has the servers of an upstream be found by their name, and 503 answered, with
// the reason to be read, while there are none.
func TestDNS(t *testing.T) {
	_, port, err := net.SplitHostPort(service(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	url, site := serveSite(t, parse(t, `{"listen": [{"address": ":8080"}], "upstreams": {
			"x": {"dns": {"name": "shop.test.", "port": `+port+`, "resolver": "`+nameserver(t, "127.0.0.1")+`"}},
			"y": {"dns": {"name": "gone.test.", "port": 80, "resolver": "`+closed.LocalAddr().String()+`"}}},
		"routes": [{"path": "/", "upstream": "x"}, {"path": "/y", "upstream": "y"}]}`))
	for path, want := range map[string]int{"/": 200, "/y": 503} {
		res, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: got %d, want %d", path, res.StatusCode, want)
		}
	}
	if got := site.Status()["x"]; len(got) != 1 || got[0].Address != "127.0.0.1:"+port {
		t.Errorf("found %+v", got)
	}
	await(t, "nothing says why there are no servers", func() bool { return strings.Contains(site.Problems()["y"], "looking up gone.test.") })
	if site.Problems()["x"] != "" {
		t.Errorf("x has the problem %s", site.Problems()["x"])
	}
}

// TestTrust has servers be known by the authorities and the name that a file says, or DNS's, also
// where they are checked, and the proxy by its certificate.
func TestTrust(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var checked atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/check" {
				checked.Add(1)
			}
			fmt.Fprint(w, r.ProtoMajor, " ", r.TLS.ServerName, " ", len(r.TLS.PeerCertificates))
		}))
		s.TLS, s.EnableHTTP2 = &tls.Config{ClientAuth: tls.RequestClientCert}, http2
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are to fail
		s.StartTLS()
		defer s.Close()
		secret, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		ca, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key.pem")
		for path, block := range map[string]*pem.Block{ca: {Type: "CERTIFICATE", Bytes: s.Certificate().Raw}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
			if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := s.Listener.Addr().String()
		_, port, err := net.SplitHostPort(at)
		if err != nil {
			t.Fatal(err)
		}
		servers := `"scheme": "https", "servers": [{"address": "` + at + `"}]`
		url, _ := serveSite(t, parse(t, `{"listen": [{"address": ":8080"}], "upstreams": {
			"known": {`+servers+`, "tls": {"name": "example.com", "ca": `+encode(t, ca)+`}, "check": {"path": "/check", "interval": "10ms"}},
			"found": {"scheme": "https", "dns": {"name": "example.com.", "port": `+port+`, "resolver": "`+nameserver(t, "127.0.0.1")+`"},
				"tls": {"ca": `+encode(t, ca)+`, "certificate": `+encode(t, ca)+`, "key": `+encode(t, key)+`}},
			"named": {`+servers+`, "tls": {"name": "other.test", "ca": `+encode(t, ca)+`}},
			"strange": {`+servers+`}},
			"routes": [{"path": "/known", "upstream": "known"}, {"path": "/found", "upstream": "found"}, {"path": "/named", "upstream": "named"}, {"path": "/strange", "upstream": "strange"}]}`))
		version := "1"
		if http2 {
			version = "2"
		}
		for path, want := range map[string]string{
			"/known": "200 " + version + " example.com 0", "/found": "200 " + version + " example.com 1", "/named": "502 Bad Gateway\n", "/strange": "502 Bad Gateway\n",
		} {
			res, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if got := fmt.Sprint(res.StatusCode, " ", string(body)); err != nil || got != want {
				t.Errorf("HTTP/%s, %s: got %q, %v, want %q", version, path, got, err, want)
			}
		}
		await(t, "no check has come", func() bool { return checked.Load() > 0 })
	}
}

// TestNoRegions has a file with a database be refused by a site that reads none.
func TestNoRegions(t *testing.T) {
	f := parse(t, `{"listen": [{"address": ":80"}], "regions": {"database": "x.mmdb"}, "routes": []}`)
	if f.Regions.Field != "country.iso_code" || f.Linger != 10*time.Minute {
		t.Errorf("got %+v, %s", f.Regions, f.Linger)
	}
	if err := new(config.Site).Take(f); err == nil || err.Error() != "regions.database: this program reads no such databases" {
		t.Errorf("got %v", err)
	}
}

// TestSchema has the schema know the keys that the reader knows, and be JSON.
func TestSchema(t *testing.T) {
	var s struct {
		Required   []string
		Properties map[string]struct {
			Items struct {
				Properties    map[string]any
				MinProperties int
			}
			Properties           map[string]any
			AdditionalProperties json.RawMessage // false, or of names of the writer's own
		}
	}
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(s.Required) != "[listen routes]" {
		t.Errorf("required are %q", s.Required)
	}
	var upstream struct {
		Properties map[string]struct {
			Properties map[string]any
			Enum       []string
		}
	}
	if err := json.Unmarshal(s.Properties["upstreams"].AdditionalProperties, &upstream); err != nil {
		t.Fatal(err)
	}
	up := upstream.Properties
	if fmt.Sprint(up["scheme"].Enum) != "[http https h2c]" || up["eject"].Properties["failures"] == nil || up["kubernetes"].Properties["service"] == nil || up["dns"].Properties["port"] == nil {
		t.Errorf("upstreams: %+v", up)
	}
	mw := s.Properties["middlewares"].Items
	if len(mw.Properties) != 10 || mw.MinProperties != 1 {
		t.Errorf("middlewares: %+v", mw)
	}
	if route := s.Properties["routes"].Items.Properties; route["header"] == nil || route["shadow"] == nil || route["region"] == nil {
		t.Errorf("routes: %+v", route)
	}
	if s.Properties["regions"].Properties["field"] == nil {
		t.Errorf("regions: %+v", s.Properties["regions"])
	}
}
