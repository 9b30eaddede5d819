package jwt_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/middleware/jwt"
)

// issuer is a key set that can be rotated, slow, wrong and away.
type issuer struct {
	mu      sync.Mutex
	keys    map[string]*ecdsa.PrivateKey
	answer  func() (*http.Response, error) // nil: the keys
	fetched atomic.Int64
}

func newIssuer(t *testing.T, kids ...string) *issuer {
	t.Helper()
	i := &issuer{keys: map[string]*ecdsa.PrivateKey{}}
	for _, kid := range kids {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		i.keys[kid] = k
	}
	return i
}

func (i *issuer) set(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// RoundTrip answers as the issuer's server would: there is no network in a test that has
// the clock to itself.
func (i *issuer) RoundTrip(*http.Request) (*http.Response, error) {
	i.fetched.Add(1)
	i.mu.Lock()
	answer := i.answer
	i.mu.Unlock()
	if answer != nil {
		return answer()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var set struct {
		Keys []map[string]string `json:"keys"`
	}
	set.Keys = []map[string]string{{"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}, {"kty": "EC", "crv": "P-256", "use": "enc"}}
	for kid, k := range i.keys {
		b, err := k.PublicKey.Bytes()
		if err != nil {
			return nil, err
		}
		set.Keys = append(set.Keys, map[string]string{"kty": "EC", "crv": "P-256", "kid": kid, "use": "sig",
			"x": base64.RawURLEncoding.EncodeToString(b[1:33]), "y": base64.RawURLEncoding.EncodeToString(b[33:])})
	}
	b, err := json.Marshal(set)
	return answering(200, string(b)), err
}

func answering(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Body: io.NopCloser(strings.NewReader(body))}
}

func (i *issuer) token(t *testing.T, kid string) string {
	t.Helper()
	signed := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"ES256","kid":%q}`, kid)) + "." +
		base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"sub":"ann","exp":%d}`, in(100*24*time.Hour)))
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.keys[kid], sum[:])
	if err != nil {
		t.Fatal(err)
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature[:])
}

func (i *issuer) verifier(t *testing.T) *jwt.Verifier { return i.caching(t, 0) }

// caching returns a verifier whose Options.Cache is n.
func (i *issuer) caching(t *testing.T, n int) *jwt.Verifier {
	t.Helper()
	keys, err := jwt.NewRemote(jwt.RemoteOptions{URL: "https://issuer.test/keys", Client: &http.Client{Transport: i}})
	if err != nil {
		t.Fatal(err)
	}
	return verifier(t, jwt.Options{Keys: keys, Cache: n})
}

func accepts(t *testing.T, v *jwt.Verifier, text string) bool {
	t.Helper()
	_, err := v.Verify(t.Context(), text)
	return err == nil
}

// TestFirstKeys has requests come while the keys do: one that looked just before they were there
// finds them, though nobody fetches any more.
func TestFirstKeys(t *testing.T) {
	i := newIssuer(t, "a")
	text := i.token(t, "a")
	for range 1000 {
		v := i.caching(t, 1)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, err := v.Verify(t.Context(), text); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// TestRotation adds a key and takes one away.
func TestRotation(t *testing.T) {
	i := newIssuer(t, "old", "new")
	next := i.keys["new"]
	old, fresh := i.token(t, "old"), i.token(t, "new")
	delete(i.keys, "new")
	synctest.Test(t, func(t *testing.T) {
		old, fresh := old, fresh
		v := i.verifier(t)
		if !accepts(t, v, old) || accepts(t, v, fresh) {
			t.Error("at first")
		}
		i.set(func() { i.keys["new"] = next })
		time.Sleep(10 * time.Second)
		if !accepts(t, v, fresh) {
			t.Error("the new key is not fetched")
		}
		before := i.fetched.Load()
		made := strings.Replace(fresh, ".", ".A", 1)
		for n := range 1000 { // names that are made up, within a pause
			text := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"ES256","kid":"%d"}`, n)) + made[strings.IndexByte(made, '.'):]
			accepts(t, v, text)
		}
		if n := i.fetched.Load() - before; n > 1 {
			t.Errorf("%d fetches for a thousand made-up names", n)
		}
		i.set(func() { delete(i.keys, "old") })
		time.Sleep(6 * time.Minute)
		accepts(t, v, fresh) // fetches behind the request
		synctest.Wait()
		if accepts(t, v, old) {
			t.Error("accepted, from the cache, by a key that was taken away")
		}
		if !accepts(t, v, fresh) {
			t.Error("the key that stayed is not accepted")
		}
	})
}

// TestRemoved takes a key away that has verified the very first token, before any key was known.
// With a cache and without, its tokens are refused once keys are fetched anew, and also when the
// issuer is then away for so long that no key counts.
func TestRemoved(t *testing.T) {
	for _, cache := range []int{-1, 0} {
		i := newIssuer(t, "old", "new")
		old, fresh := i.token(t, "old"), i.token(t, "new")
		synctest.Test(t, func(t *testing.T) {
			v := i.caching(t, cache)
			if !accepts(t, v, old) {
				t.Fatalf("cache %d: at first", cache)
			}
			i.set(func() { delete(i.keys, "old") })
			time.Sleep(6 * time.Minute)
			accepts(t, v, fresh) // fetches behind the request
			synctest.Wait()
			if accepts(t, v, old) || !accepts(t, v, fresh) {
				t.Errorf("cache %d: accepted by a key that was taken away", cache)
			}
			i.set(func() { i.answer = func() (*http.Response, error) { return nil, errors.New("connection refused") } })
			time.Sleep(26 * time.Hour)
			if accepts(t, v, old) || accepts(t, v, fresh) {
				t.Errorf("cache %d: accepted by keys that are too old", cache)
			}
		})
	}
}

// TestEmptied has an issuer take its only key away, and publish it again.
func TestEmptied(t *testing.T) {
	i := newIssuer(t, "k")
	text := i.token(t, "k")
	synctest.Test(t, func(t *testing.T) {
		keys, err := jwt.NewRemote(jwt.RemoteOptions{URL: "https://issuer.test/keys", Client: &http.Client{Transport: i}})
		if err != nil {
			t.Fatal(err)
		}
		v := verifier(t, jwt.Options{Keys: keys})
		if !accepts(t, v, text) {
			t.Fatal("at first")
		}
		i.set(func() { i.answer = func() (*http.Response, error) { return answering(200, `{"keys":[]}`), nil } })
		time.Sleep(6 * time.Minute)
		accepts(t, v, text) // fetches behind the request
		synctest.Wait()
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		v.Middleware(http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("by a key that was taken away: %d", w.Code)
		}
		if err := keys.Fetch(t.Context()); err == nil {
			t.Error("a service without keys says that it has some")
		}
		i.set(func() { i.answer = nil })
		time.Sleep(6 * time.Minute)
		if !accepts(t, v, text) {
			t.Error("refused once the key is published again")
		}
	})
}

// TestNeverStale has keys count for ever.
func TestNeverStale(t *testing.T) {
	i := newIssuer(t, "k")
	text := i.token(t, "k")
	synctest.Test(t, func(t *testing.T) {
		keys, err := jwt.NewRemote(jwt.RemoteOptions{URL: "https://issuer.test/keys", Client: &http.Client{Transport: i}, Stale: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		v := verifier(t, jwt.Options{Keys: keys})
		if !accepts(t, v, text) {
			t.Fatal("at first")
		}
		i.set(func() { i.answer = func() (*http.Response, error) { return nil, errors.New("connection refused") } })
		time.Sleep(90 * 24 * time.Hour)
		for range 3 {
			if !accepts(t, v, text) {
				t.Error("refused once the issuer is away")
			}
		}
	})
}

// TestIssuerAway starts without the issuer, and loses it later.
func TestIssuerAway(t *testing.T) {
	i := newIssuer(t, "k")
	text := i.token(t, "k")
	synctest.Test(t, func(t *testing.T) {
		i.set(func() { i.answer = func() (*http.Response, error) { return nil, errors.New("connection refused") } })
		v := i.verifier(t)
		h := v.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Authorization", "Bearer "+text)
			h.ServeHTTP(w, r)
			return w
		}
		for range 100 {
			if w := ask(); w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "refused") {
				t.Fatalf("without keys: %d %q", w.Code, w.Body)
			}
		}
		if n := i.fetched.Load(); n > 2 {
			t.Errorf("%d fetches at once from an issuer that is away", n)
		}
		for range 60 {
			time.Sleep(time.Minute)
			ask()
		}
		if n := i.fetched.Load(); n > 20 {
			t.Errorf("%d fetches in an hour from an issuer that is away", n)
		}
		i.set(func() { i.answer = nil })
		time.Sleep(5 * time.Minute)
		if w := ask(); w.Code != 200 {
			t.Errorf("the issuer is back: %d", w.Code)
		}
		for _, answer := range []string{"", "<html>", `{}`, `{"keys":null}`, `{"keys":[{"kty":"RSA"}]}`,
			`{"keys":[{"kty":"OKP","crv":"X25519","alg":"EdDSA","x":"` + strings.Repeat("A", 43) + `"}]}`, strings.Repeat(" ", 2<<20)} {
			i.set(func() { i.answer = func() (*http.Response, error) { return answering(200, answer), nil } })
			time.Sleep(10 * time.Minute)
			ask()
			synctest.Wait()
			if w := ask(); w.Code != 200 {
				t.Errorf("while the issuer answers %.20q: %d", answer, w.Code)
			}
		}
		time.Sleep(25 * time.Hour)
		if w := ask(); w.Code != 503 {
			t.Errorf("by keys that are a day too old: %d", w.Code)
		}
	})
}

// TestSlowIssuer has many requests wait for one fetch, and a client give up.
func TestSlowIssuer(t *testing.T) {
	i := newIssuer(t, "k")
	text := i.token(t, "k")
	synctest.Test(t, func(t *testing.T) {
		i.set(func() {
			i.answer = func() (*http.Response, error) {
				time.Sleep(3 * time.Second)
				i.set(func() { i.answer = nil })
				return i.RoundTrip(nil)
			}
		})
		v := i.verifier(t)
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if !accepts(t, v, text) {
					t.Error("refused")
				}
			})
		}
		begun := time.Now()
		if _, err := v.Verify(gone, text); err == nil || time.Since(begun) != time.Second {
			t.Errorf("a client that gave up waited %s: %v", time.Since(begun), err)
		}
		all.Wait()
		if n := i.fetched.Load(); n != 2 { // the transport asks itself once more
			t.Errorf("%d fetches", n)
		}
	})
}

// TestRotationAmidLoad has a thousand clients ask while the issuer replaces its key three
// times, and is away in between. No token of a key that is published is refused.
func TestRotationAmidLoad(t *testing.T) {
	kids := []string{"a", "b", "c", "d"}
	i := newIssuer(t, kids...)
	keys, tokens := maps.Clone(i.keys), make([]string, len(kids))
	for n, kid := range kids {
		tokens[n] = i.token(t, kid)
	}
	for _, kid := range kids[1:] {
		delete(i.keys, kid)
	}
	synctest.Test(t, func(t *testing.T) {
		v := i.verifier(t)
		var current atomic.Int64 // the key that clients have tokens of
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				for ctx.Err() == nil {
					n := current.Load()
					if _, err := v.Verify(context.Background(), tokens[n]); err != nil {
						t.Errorf("a token of key %s is refused: %v", kids[n], err)
					}
					time.Sleep(30 * time.Second)
				}
			})
		}
		time.Sleep(time.Minute)
		for n, kid := range kids[1:] {
			i.set(func() { i.answer = func() (*http.Response, error) { return nil, errors.New("connection refused") } })
			time.Sleep(20 * time.Minute)
			i.set(func() { // back, with both keys
				i.answer, i.keys[kid] = nil, keys[kid]
			})
			time.Sleep(10 * time.Minute)
			current.Add(1)
			time.Sleep(time.Minute) // requests under way have ended
			i.set(func() { delete(i.keys, kids[n]) })
			time.Sleep(10 * time.Minute)
			if accepts(t, v, tokens[n]) {
				t.Errorf("a token of key %s is accepted, which was taken away", kids[n])
			}
		}
		cancel()
		all.Wait()
	})
}

// TestExactNames has members beside the ones that count whose names differ in case alone.
func TestExactNames(t *testing.T) {
	i := newIssuer(t, "k")
	resp, err := i.RoundTrip(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	set := strings.ReplaceAll(string(b), `"}`, `","KID":"other","X":"AA","Kty":"RSA"}`)
	set = strings.TrimSuffix(set, "}") + `,"Keys":[]}`
	i.set(func() { i.answer = func() (*http.Response, error) { return answering(200, set), nil } })
	if !accepts(t, i.verifier(t), i.token(t, "k")) {
		t.Errorf("no key is found in %s", set)
	}
}

func TestRemoteOptions(t *testing.T) {
	for _, o := range []jwt.RemoteOptions{{}, {URL: "http://issuer.test/"}, {URL: "ftp://x"}, {URL: ":"}, {URL: "https://x", Refresh: -1}} {
		if _, err := jwt.NewRemote(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := jwt.NewRemote(jwt.RemoteOptions{URL: "http://127.0.0.1:1/keys"}); err != nil {
		t.Error(err)
	}
}

// TestClientPanics has the keys' client panic: tokens cannot be verified, nobody waits for
// ever, and the next fetch goes well.
func TestClientPanics(t *testing.T) {
	i := newIssuer(t, "k")
	text := i.token(t, "k")
	synctest.Test(t, func(t *testing.T) {
		i.set(func() { i.answer = func() (*http.Response, error) { panic("broken") } })
		v := i.verifier(t)
		if accepts(t, v, text) {
			t.Error("accepted without keys")
		}
		i.set(func() { i.answer = nil })
		time.Sleep(time.Hour)
		if !accepts(t, v, text) {
			t.Error("not accepted once there are keys")
		}
	})
}
