package apikey_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/apikey"
)

func Example() {
	key := apikey.Make() // given to the partner, and forgotten here
	v, err := apikey.New(apikey.Options{Keys: map[string]string{apikey.Hash(key): "partner"}})
	if err != nil {
		panic(err)
	}
	h := v.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello ", apikey.From(r.Context()))
	}))
	for _, sent := range []string{"guess", key} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Api-Key", sent)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 401 Unauthorized
	// 200 hello partner
}

const (
	key   = "JBSWY3DPEHPK3PXPJBSWY3DPEH"
	other = "KRSXG5CTMVRXEZLUKRSXG5CTMV"
)

func open(t testing.TB, header string) *apikey.Verifier {
	t.Helper()
	v, err := apikey.New(apikey.Options{Header: header, Keys: map[string]string{apikey.Hash(key): "ann", apikey.Hash(other): "ben"}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ask returns the status, and the name that the handler saw.
func ask(v *apikey.Verifier, field string, values ...string) (int, string) {
	name := "nobody"
	r := httptest.NewRequest("GET", "/", nil)
	r.Header[field] = values
	w := httptest.NewRecorder()
	v.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { name = apikey.From(r.Context()) })).ServeHTTP(w, r)
	return w.Code, name
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		header, field string
		values        []string
		want          string // empty: refused
	}{
		{"", "X-Api-Key", []string{key}, "ann"},
		{"", "X-Api-Key", []string{other}, "ben"},
		{"x-key", "X-Key", []string{key}, "ann"},
		{"authorization", "Authorization", []string{"Bearer " + key}, "ann"},
		{"authorization", "Authorization", []string{"bearer " + key}, "ann"},
		{"authorization", "Authorization", []string{"Bearer   " + key}, "ann"},
		{"", "X-Api-Key", nil, ""},
		{"", "X-Api-Key", []string{" " + key}, ""},
		{"", "X-Api-Key", []string{""}, ""},
		{"", "X-Api-Key", []string{key[1:]}, ""},
		{"", "X-Api-Key", []string{key + " "}, ""},
		{"", "X-Api-Key", []string{strings.ToLower(key)}, ""},
		{"", "X-Api-Key", []string{apikey.Hash(key)}, ""},
		{"", "X-Api-Key", []string{key, key}, ""},
		{"", "X-Api-Key", []string{strings.Repeat(key, 100)}, ""},
		{"", "X-Api-Key", []string{"Bearer " + key}, ""},
		{"", "Authorization", []string{"Bearer " + key}, ""},
		{"authorization", "Authorization", []string{key}, ""},
		{"authorization", "Authorization", []string{"Basic " + key}, ""},
		{"authorization", "Authorization", []string{"Bear"}, ""},
	} {
		v := open(t, c.header)
		status, name := ask(v, c.field, c.values...)
		if c.want == "" && (status != 401 || name != "nobody" || v.Refused() != 1) || c.want != "" && (status != 200 || name != c.want) {
			t.Errorf("%+v: %d for %s", c, status, name)
		}
	}
}

func TestChallenge(t *testing.T) {
	for header, want := range map[string]string{"": `ApiKey realm="restricted"`, "Authorization": `Bearer realm="restricted"`} {
		w := httptest.NewRecorder()
		open(t, header).Middleware(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if got := w.Header().Get("WWW-Authenticate"); got != want {
			t.Errorf("keys in %q: got %q, want %q", header, got, want)
		}
	}
}

// TestRefusedOptions also sees to it that an error does not have what may be a key.
func TestRefusedOptions(t *testing.T) {
	for _, c := range []struct {
		keys map[string]string
		why  string
	}{
		{nil, "who may pass"},
		{map[string]string{key: "ann"}, `the key of "ann"`},
		{map[string]string{apikey.Hash(key)[2:]: "ann"}, `the key of "ann"`},
		{map[string]string{apikey.Hash(key): ""}, "no name"},
	} {
		_, err := apikey.New(apikey.Options{Keys: c.keys})
		if err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), key) {
			t.Errorf("%v: %v, want %q in it", c.keys, err, c.why)
		}
	}
}

func TestMake(t *testing.T) {
	if a, b := apikey.Make(), apikey.Make(); a == b || len(a) < 26 {
		t.Errorf("made %q and %q", a, b)
	}
}

// TestSetKeys replaces one key under 1,000 clients that have the other: none is refused.
func TestSetKeys(t *testing.T) {
	v := open(t, "")
	var clients sync.WaitGroup
	for range 1000 {
		clients.Go(func() {
			if status, name := ask(v, "X-Api-Key", other); status != 200 || name != "ben" {
				t.Errorf("during the change: %d for %s", status, name)
			}
		})
	}
	for range 100 {
		if err := v.SetKeys(map[string]string{apikey.Hash(apikey.Make()): "ann", apikey.Hash(other): "ben"}); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
	if status, _ := ask(v, "X-Api-Key", key); status != 401 {
		t.Errorf("a key that was removed: %d", status)
	}
	if err := v.SetKeys(nil); err == nil {
		t.Error("an empty list was accepted")
	}
	if status, _ := ask(v, "X-Api-Key", other); status != 200 {
		t.Errorf("after an error: %d", status)
	}
}

func BenchmarkRequest(b *testing.B) {
	h := chain.Must(chain.New(open(b, "").Middleware).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Api-Key", key)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}
