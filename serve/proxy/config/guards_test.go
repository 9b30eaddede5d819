package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/apikey"
	"github.com/tarehq/tare/serve/middleware/basicauth"
	"github.com/tarehq/tare/serve/proxy/config"
	"github.com/tarehq/tare/serve/servetest"
)

// encode returns a value as JSON.
func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// token is one signed by HS256.
func token(secret, claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// serveSite serves a site by the engine, and returns its URL.
func serveSite(t *testing.T, files ...*config.File) (string, *config.Site) {
	t.Helper()
	site := &config.Site{}
	t.Cleanup(site.Close)
	for _, f := range files {
		if err := site.Take(f); err != nil {
			t.Fatal(err)
		}
	}
	s := servetest.NewServer(site)
	t.Cleanup(s.Close)
	return s.URL, site
}

// TestMiddlewares is the table of what the middlewares of a file do to requests.
func TestMiddlewares(t *testing.T) {
	const secret = "a secret of at least thirty-two bytes"
	dir := t.TempDir()
	secretFile, denied := filepath.Join(dir, "secret"), filepath.Join(dir, "denied")
	for path, text := range map[string]string{secretFile: secret + "\n", denied: "203.0.113.9 # a bad one\n198.51.100.0/24\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, "id=", r.Header.Get("X-Request-Id"), " for=", r.Header.Get("X-Forwarded-For"))
	}))
	defer up.Close()
	url, _ := serveSite(t, parse(t, `{"listen": [{"address": ":8080"}], "trusted": ["127.0.0.1"],
		"middlewares": [
			{"requestid": {}},
			{"secure": {"hsts": "0s"}},
			{"cors": {"origins": ["https://shop.example"]}},
			{"ipfilter": {"deny_file": `+encode(t, denied)+`, "deny": ["192.0.2.1"]}},
			{"limit": {"body": 10}}
		],
		"guards": {
			"members": [{"jwt": {"algorithm": "HS256", "secret_file": `+encode(t, secretFile)+`, "issuer": "me"}}],
			"staff": [{"basicauth": {"users": {"ann": `+encode(t, basicauth.Hash("secret"))+`}}}],
			"machines": [{"apikey": {"keys": {"robot": `+encode(t, apikey.Hash("0123456789"))+`}}}],
			"few": [{"ratelimit": {"requests": 2, "per": "1h"}}],
			"quick": [{"timeout": {"after": "100ms"}}]
		},
		"upstreams": {"a": {"servers": [{"address": "`+up.Listener.Addr().String()+`"}]}},
		"routes": [
			{"path": "/", "upstream": "a"},
			{"path": "/members", "guard": "members", "upstream": "a"},
			{"path": "/staff", "guard": "staff", "upstream": "a"},
			{"path": "/machines", "guard": "machines", "upstream": "a"},
			{"path": "/few", "method": ["GET"], "guard": "few", "upstream": "a"},
			{"path": "/slow", "guard": "quick", "upstream": "a"}
		]}`))
	end := fmt.Sprint(time.Now().Add(time.Hour).Unix())
	good := token(secret, `{"iss":"me","exp":`+end+`}`)
	for _, c := range []struct {
		name, method, path string
		header             []string
		body               string
		status             int
		want               string            // in the body
		answer             map[string]string // fields
	}{
		{"its own identifier", "GET", "/", []string{"X-Request-Id", "abc"}, "", 200, "id=abc for=127.0.0.1", map[string]string{"X-Request-Id": "abc"}},
		{"fields", "GET", "/", nil, "", 200, "id=", map[string]string{"X-Content-Type-Options": "nosniff", "Strict-Transport-Security": ""}},
		{"another site", "GET", "/", []string{"Origin", "https://evil.example"}, "", 200, "", map[string]string{"Access-Control-Allow-Origin": ""}},
		{"the shop", "GET", "/", []string{"Origin", "https://shop.example"}, "", 200, "", map[string]string{"Access-Control-Allow-Origin": "https://shop.example"}},
		{"a preflight", "OPTIONS", "/few", []string{"Origin", "https://shop.example", "Access-Control-Request-Method", "GET"}, "", 204, "", map[string]string{"Access-Control-Allow-Origin": "https://shop.example"}},
		{"a denied client behind a proxy", "GET", "/", []string{"X-Forwarded-For", "203.0.113.9"}, "", 403, "", nil},
		{"one of a denied network", "GET", "/", []string{"X-Forwarded-For", "198.51.100.77"}, "", 403, "", nil},
		{"one of the list", "GET", "/", []string{"X-Forwarded-For", "192.0.2.1"}, "", 403, "", nil},
		{"another client", "GET", "/", []string{"X-Forwarded-For", "203.0.113.8"}, "", 200, "for=203.0.113.8, 127.0.0.1", nil},
		{"a small body", "POST", "/", nil, "0123456789", 200, "", nil},
		{"a large body", "POST", "/", nil, "0123456789x", 413, "", nil},
		{"no token", "GET", "/members", nil, "", 401, "", map[string]string{"X-Content-Type-Options": "nosniff"}},
		{"a token", "GET", "/members", []string{"Authorization", "Bearer " + good}, "", 200, "", nil},
		{"another's token", "GET", "/members", []string{"Authorization", "Bearer " + token(secret, `{"iss":"you","exp":`+end+`}`)}, "", 401, "", nil},
		{"a forged token", "GET", "/members", []string{"Authorization", "Bearer " + token(secret+"x", `{"iss":"me","exp":`+end+`}`)}, "", 401, "", nil},
		{"no password", "GET", "/staff", nil, "", 401, "", nil},
		{"a password", "GET", "/staff", []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:secret"))}, "", 200, "", nil},
		{"no key", "GET", "/machines", nil, "", 401, "", nil},
		{"a key", "GET", "/machines", []string{"X-Api-Key", "0123456789"}, "", 200, "", nil},
		{"the first of a few", "GET", "/few", nil, "", 200, "", nil},
		{"the second", "GET", "/few", nil, "", 200, "", nil},
		{"the third", "GET", "/few", nil, "", 429, "", nil},
		{"another client's first", "GET", "/few", []string{"X-Forwarded-For", "203.0.113.8"}, "", 200, "", nil},
		{"a slow one", "GET", "/slow", nil, "", 504, "", nil},
	} {
		r, err := http.NewRequest(c.method, url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		body := make([]byte, 200)
		n, _ := res.Body.Read(body)
		res.Body.Close()
		if res.StatusCode != c.status || !strings.Contains(string(body[:n]), c.want) {
			t.Errorf("%s: got %d %q, want %d %q", c.name, res.StatusCode, body[:n], c.status, c.want)
		}
		for name, want := range c.answer {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", c.name, name, got, want)
			}
		}
	}
}

// TestLongBody has a body that says no length, and is longer than it may be, be answered as one that
// says its length.
func TestLongBody(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer up.Close()
	url, _ := serveSite(t, parse(t, `{"listen": [{"address": ":8080"}], "middlewares": [{"limit": {"body": "1 KiB"}}],
		"upstreams": {"a": {"servers": [{"address": "`+up.Listener.Addr().String()+`"}]}}, "routes": [{"path": "/", "upstream": "a"}]}`))
	for n, want := range map[int]int{1024: 200, 1025: 413} {
		body := strings.Repeat("x", n)
		r, err := http.NewRequest("POST", url, io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%d bytes: got %d, want %d", n, res.StatusCode, want)
		}
	}
}

// TestKept has a rate limit keep what it has counted over files that say the same of it.
func TestKept(t *testing.T) {
	up := service(t, "a")
	text := func(limit, route string) *config.File {
		return parse(t, `{"listen": [{"address": ":8080"}], "middlewares": [{"ratelimit": {"requests": `+limit+`, "per": "1h"}}],
			"upstreams": {"a": {"servers": [{"address": "`+up+`"}]}}, "routes": [{"path": "`+route+`", "upstream": "a"}]}`)
	}
	url, site := serveSite(t, text("1", "/"))
	status := func() int {
		t.Helper()
		res, err := http.Get(url + "/x")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := status(); got != 200 {
		t.Errorf("the first request: %d", got)
	}
	if err := site.Take(text("1", "/x")); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != 429 {
		t.Errorf("after a file with the same limit: %d, want 429", got)
	}
	if err := site.Take(text("2", "/x")); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != 200 {
		t.Errorf("after a file with another limit: %d, want 200", got)
	}
}

// TestKeys has public keys be read of PEM, and what is none be refused.
func TestKeys(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	text := `{` + rest + `"routes": [], "middlewares": [{"jwt": {"algorithm": "ES256", "public_key_file": ` + encode(t, path) + `}}]}`
	for _, c := range []struct {
		content []byte
		want    string // empty: it is taken
	}{
		{pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), ""},
		{[]byte("none"), "has no key in PEM"},
		{pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der[1:]}), "middlewares[0].jwt: " + path},
	} {
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Parse([]byte(text)); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.content, err, c.want)
		}
	}
}
