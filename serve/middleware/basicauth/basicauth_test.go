package basicauth_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/chain"
	"github.com/tarehq/tare/serve/middleware/basicauth"
)

func Example() {
	v, err := basicauth.New(basicauth.Options{Users: map[string]string{
		"ann": "$pbkdf2-sha256$1000$c2FsdHNhbHRzYWx0c2FsdA$BBs+1+PaslLtBPULUr8/lQicvVuHiEPMz0i8MjLCbzM", // Hash made it
	}})
	if err != nil {
		panic(err)
	}
	h := v.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello ", basicauth.From(r.Context()))
	}))
	for _, password := range []string{"guess", "correct horse"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("ann", password)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 401 Unauthorized
	// 200 hello ann
}

// hashes compare plain texts and count how often.
type hashes struct{ made atomic.Int64 }

func (h *hashes) compare(hash, password string) bool {
	h.made.Add(1)
	return hash == password
}

var people = map[string]string{"ann": "one two three", "ben": "four:five", "zoë": "sech s"}

func open(t testing.TB, o basicauth.Options) *basicauth.Verifier {
	t.Helper()
	if o.Users == nil {
		o.Users = people
	}
	v, err := basicauth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func request(field string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	if field != "" {
		r.Header.Set("Authorization", field)
	}
	return r
}

func encode(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

// ask returns the status, and the user that the handler saw.
func ask(v *basicauth.Verifier, r *http.Request) (int, string) {
	user := "nobody"
	w := httptest.NewRecorder()
	v.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { user = basicauth.From(r.Context()) })).ServeHTTP(w, r)
	return w.Code, user
}

// TestCredentials has fields that are and are not a user's, and counts the slow hashes
// that each took. Every right password is remembered after the first time.
func TestCredentials(t *testing.T) {
	for field, want := range map[string]struct {
		user string // empty: refused
		made int64  // in two requests
	}{
		encode("ann:one two three"):                 {"ann", 1},
		encode("ben:four:five"):                     {"ben", 1},
		encode("zoë:sech s"):                        {"zoë", 1},
		"bAsIc  " + encode("ann:one two three")[6:]: {"ann", 1},
		encode("ann:one two thre"):                  {"", 2},
		encode("ann:one two threee"):                {"", 2},
		encode("ann:"):                              {"", 2},
		encode("nobody:four:five"):                  {"", 2}, // a name that does not exist costs the same
		encode("Ann:one two three"):                 {"", 2},
		encode(":one two three"):                    {"", 0},
		encode(":four:five"):                        {"", 0},
		encode("ann"):                               {"", 0},
		encode(""):                                  {"", 0},
		"":                                          {"", 0},
		"Basic":                                     {"", 0},
		"Basic !!!":                                 {"", 0},
		"Basic " + strings.TrimRight(encode("zoë:sech s")[6:], "="): {"", 0},
		"Bearer " + encode("ann:one two three")[6:]:                 {"", 0},
		encode("ann:" + strings.Repeat("x", 2000)):                  {"", 0},
	} {
		var h hashes
		v := open(t, basicauth.Options{Compare: h.compare})
		for range 2 {
			status, user := ask(v, request(field))
			if want.user == "" && (status != 401 || user != "nobody") || want.user != "" && (status != 200 || user != want.user) {
				t.Errorf("%q: %d for %s, want %q", field, status, user, want.user)
			}
		}
		if made := h.made.Load(); made != want.made {
			t.Errorf("%q: %d slow hashes, want %d", field, made, want.made)
		}
	}
}

// TestTwoFields has none of two fields count, though each is right.
func TestTwoFields(t *testing.T) {
	v := open(t, basicauth.Options{Compare: new(hashes).compare})
	r := request(encode("ann:one two three"))
	r.Header.Add("Authorization", encode("ann:one two three"))
	if status, _ := ask(v, r); status != 401 || v.Refused() != 1 {
		t.Errorf("%d, %d refused", status, v.Refused())
	}
}

func TestChallenge(t *testing.T) {
	w := httptest.NewRecorder()
	open(t, basicauth.Options{Compare: new(hashes).compare, Realm: "the shop"}).Middleware(http.NotFoundHandler()).ServeHTTP(w, request(""))
	if got, want := w.Header().Get("WWW-Authenticate"), `Basic realm="the shop", charset="UTF-8"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// known is by Python's hashlib.pbkdf2_hmac("sha256", b"password", b"saltsaltsaltsalt", 1000).
const known = "$pbkdf2-sha256$1000$c2FsdHNhbHRzYWx0c2FsdA$8nX7hwFEzIB8aPajJTYK8weHQc5Ngz0pFVAKvSu4jQA"

// TestHash verifies what Hash makes, and a hash that another implementation made.
func TestHash(t *testing.T) {
	a, b := basicauth.Hash("secret"), basicauth.Hash("secret")
	if a == b {
		t.Error("two hashes of a password are the same: they have no salt")
	}
	v := open(t, basicauth.Options{Users: map[string]string{"ann": a, "ben": known}})
	for credentials, want := range map[string]int{"ann:secret": 200, "ben:password": 200, "ben:passwore": 401} {
		if status, _ := ask(v, request(encode(credentials))); status != want {
			t.Errorf("%s: %d, want %d", credentials, status, want)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	for _, c := range []struct {
		o   basicauth.Options
		why string
	}{
		{basicauth.Options{}, "who may pass"},
		{basicauth.Options{Users: map[string]string{"ann": "plain"}}, "not a hash"},
		{basicauth.Options{Users: map[string]string{"a:b": known}}, "no colon"},
		{basicauth.Options{Users: map[string]string{"": known}}, "not empty"},
		{basicauth.Options{Users: map[string]string{"ann": known[:len(known)-4]}}, "a key of"},
		{basicauth.Options{Users: map[string]string{"ann": strings.Replace(known, "$1000$", "$1$", 1)}}, "1 rounds"},
		{basicauth.Options{Users: map[string]string{"ann": strings.Replace(known, "$1000$", "$999999999$", 1)}}, "rounds"},
		{basicauth.Options{Users: map[string]string{"ann": strings.Replace(known, "$1000$", "$x$", 1)}}, "malformed"},
		{basicauth.Options{Users: map[string]string{"ann": known}, Realm: `a"b`}, "Realm"},
		{basicauth.Options{Users: map[string]string{"ann": known}, AtOnce: -1}, "negative"},
		{basicauth.Options{Users: map[string]string{"ann": known}, Wait: -1}, "negative"},
	} {
		if _, err := basicauth.New(c.o); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v, want %q in it", c.o, err, c.why)
		}
	}
}

// TestGuesses floods with guesses: no more are hashed at a time than the options say, the
// others get 503 after the wait, and a password that is remembered passes at once.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		v := open(t, basicauth.Options{AtOnce: 2, Wait: time.Second, Compare: func(hash, password string) bool {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(400 * time.Millisecond)
			now.Add(-1)
			return hash == password
		}})
		if status, _ := ask(v, request(encode("ann:one two three"))); status != 200 {
			t.Fatal(status)
		}
		var busy, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				switch status, _ := ask(v, request(encode(fmt.Sprintf("user%d:guess", i)))); status {
				case 401:
					refused.Add(1)
				case 503:
					busy.Add(1)
				}
			})
		}
		synctest.Wait()
		begun := time.Now()
		if status, _ := ask(v, request(encode("ann:one two three"))); status != 200 || time.Since(begun) > 0 {
			t.Errorf("a user that is known: %d after %s", status, time.Since(begun))
		}
		all.Wait()
		if most.Load() != 2 || refused.Load() != 6 || busy.Load() != 994 {
			t.Errorf("%d hashes at a time, %d guesses refused, %d told to come back; want 2, 6, 994", most.Load(), refused.Load(), busy.Load())
		}
	})
}

// TestGone has a client go away while it waits.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := open(t, basicauth.Options{AtOnce: 1, Wait: time.Hour, Compare: func(string, string) bool {
			time.Sleep(time.Minute)
			return false
		}})
		go ask(v, request(encode("ann:guess")))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if status, _ := ask(v, request(encode("ann:guess")).WithContext(ctx)); status != 503 || time.Since(begun) != time.Second {
			t.Errorf("%d after %s", status, time.Since(begun))
		}
		time.Sleep(time.Hour)
	})
}

// TestSetUsers changes a password under 1,000 clients: every answer is that of the old or
// the new one, and the old one, though remembered, is refused afterwards.
func TestSetUsers(t *testing.T) {
	v := open(t, basicauth.Options{Compare: new(hashes).compare, Wait: time.Minute})
	var clients sync.WaitGroup
	for range 1000 {
		clients.Go(func() {
			if status, user := ask(v, request(encode("ben:four:five"))); status != 200 || user != "ben" {
				t.Errorf("during the change: %d for %s", status, user)
			}
		})
	}
	for i := range 100 {
		if err := v.SetUsers(map[string]string{"ann": fmt.Sprint(i), "ben": "four:five"}); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
	if err := v.SetUsers(nil); err == nil {
		t.Error("an empty list was accepted")
	}
	for credentials, want := range map[string]int{"ann:99": 200, "ann:98": 401, "ann:one two three": 401, "ben:four:five": 200} {
		if status, _ := ask(v, request(encode(credentials))); status != want {
			t.Errorf("%s: %d, want %d", credentials, status, want)
		}
	}
}

// TestUsersStay replaces the users by others among whom one has the same hash: his password is not
// hashed anew, and that of one who was away for a while is.
func TestUsersStay(t *testing.T) {
	var hashed atomic.Int64
	v := open(t, basicauth.Options{Compare: func(hash, password string) bool {
		hashed.Add(1)
		return hash == password
	}})
	for _, c := range []struct {
		users map[string]string
		ask   string
		want  int
		times int64
	}{
		{map[string]string{"ann": "x"}, "ann:x", 200, 1},
		{map[string]string{"ann": "x", "cid": "z"}, "ann:x", 200, 1},
		{map[string]string{"ann": "y"}, "ann:x", 401, 2},
		{map[string]string{"cid": "z"}, "ann:y", 401, 3},
		{map[string]string{"ann": "y"}, "ann:y", 200, 4},
	} {
		if err := v.SetUsers(c.users); err != nil {
			t.Fatal(err)
		}
		if status, _ := ask(v, request(encode(c.ask))); status != c.want || hashed.Load() != c.times {
			t.Errorf("%s among %v: %d after %d hashes, want %d after %d", c.ask, c.users, status, hashed.Load(), c.want, c.times)
		}
	}
}

// FuzzCredentials has whatever field: who passes has the user's password by the standard
// library's reading.
func FuzzCredentials(f *testing.F) {
	f.Add(encode("ann:one two three"))
	f.Add("Basic YW5uOm9uZSB0d28gdGhyZWU")
	v := open(f, basicauth.Options{Compare: new(hashes).compare})
	f.Fuzz(func(t *testing.T, field string) {
		r := request("")
		r.Header["Authorization"] = []string{field}
		status, user := ask(v, r)
		if status != 200 {
			return
		}
		r.Header.Set("Authorization", "Basic "+strings.TrimLeft(field[len("Basic "):], " "))
		if name, password, ok := r.BasicAuth(); !ok || name != user || people[name] != password {
			t.Errorf("%q passes as %s; net/http reads %q, %q", field, user, name, password)
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	v := open(b, basicauth.Options{Compare: new(hashes).compare})
	h := chain.Must(chain.New(v.Middleware).Then(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	w, r := httptest.NewRecorder(), request(encode("ann:one two three"))
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

func BenchmarkHash(b *testing.B) {
	for b.Loop() {
		basicauth.Hash("one two three")
	}
}

// TestComparePanics gives the turn back.
func TestComparePanics(t *testing.T) {
	broken := true
	v := open(t, basicauth.Options{AtOnce: 1, Wait: time.Second, Compare: func(hash, password string) bool {
		if broken {
			panic("broken")
		}
		return hash == password
	}})
	h := v.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	serve := func() (w *httptest.ResponseRecorder, p any) {
		defer func() { p = recover() }()
		w = httptest.NewRecorder()
		r := request("")
		r.SetBasicAuth("ann", people["ann"])
		h.ServeHTTP(w, r)
		return w, nil
	}
	if w, p := serve(); p != "broken" {
		t.Errorf("%d, the panic is %v", w.Code, p)
	}
	broken = false
	if w, _ := serve(); w.Code != 200 {
		t.Errorf("the turn is lost: %d", w.Code)
	}
}
