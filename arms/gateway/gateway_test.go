package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/middleware/ratelimit"
)

// asked is the answer to a request.
func asked(t *testing.T, base, method, path, token, body string) (status int, header http.Header, answer map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return res.StatusCode, res.Header, answer
}

func startShop(t *testing.T, mode string) (base string) {
	t.Helper()
	h, err := newHandler(mode, ratelimit.GCRA{Rate: 1, Burst: 5})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestJourney has a user buy, the same with a gateway and without.
func TestJourney(t *testing.T) {
	for _, mode := range []string{"direct", "open", "gateway"} {
		base := startShop(t, mode)
		status, _, got := asked(t, base, "POST", "/login", "", `{"name": "ann", "password": "secret of ann"}`)
		token, _ := got["token"].(string)
		if status != 200 || token == "" {
			t.Fatalf("%s: login is answered %d %v", mode, status, got)
		}
		status, _, got = asked(t, base, "GET", "/recommend?user=ann", token, "")
		list, _ := got["articles"].([]any)
		if status != 200 || len(list) != best {
			t.Fatalf("%s: recommend is answered %d %v", mode, status, got)
		}
		last := float64(1 << 20)
		for _, a := range list {
			if fit := a.(map[string]any)["fit"].(float64); fit > last || fit <= 0 {
				t.Errorf("%s: the articles fit %v, want the best first", mode, list)
			} else {
				last = fit
			}
		}
		id := list[0].(map[string]any)["id"].(float64)
		status, _, got = asked(t, base, "POST", "/orders", token, fmt.Sprintf(`{"article": %v, "count": 2}`, id))
		if status != 201 || got["order"] != 1.0 || got["sum"] != 2*(100+id) || got["receipt"] == "" {
			t.Errorf("%s: order is answered %d %v", mode, status, got)
		}
		if status, _, got = asked(t, base, "GET", "/ready", "", ""); status != 200 || got["ready"] != true {
			t.Errorf("%s: ready is answered %d %v", mode, status, got)
		}
		for body, want := range map[string]int{`{"article": 1}`: 400, `{"article": 5000, "count": 1}`: 400, `nonsense`: 400} {
			if status, _, _ = asked(t, base, "POST", "/orders", token, body); status != want && !(mode == "gateway" && status == 429) {
				t.Errorf("%s: an order of %s is answered %d, want %d", mode, body, status, want)
			}
		}
	}
}

// TestGuards asks the gateway for what it does not let pass, and an open one that lets it.
func TestGuards(t *testing.T) {
	base, open := startShop(t, "gateway"), startShop(t, "open")
	if status, _, _ := asked(t, base, "POST", "/login", "", `{"name": "ann", "password": "guessed"}`); status != 401 {
		t.Errorf("a wrong password is answered %d", status)
	}
	for _, token := range []string{"", "a.b.c"} {
		if status, _, _ := asked(t, base, "GET", "/recommend?user=ann", token, ""); status != 401 {
			t.Errorf("the token %q is answered %d", token, status)
		}
		if status, _, _ := asked(t, open, "GET", "/recommend?user=ann", token, ""); status != 200 {
			t.Errorf("the open one answers the token %q with %d", token, status)
		}
	}
	for _, name := range []string{"ann", "bob"} { // each has a limit of her own
		_, _, got := asked(t, base, "POST", "/login", "", fmt.Sprintf(`{"name": %q, "password": "secret of %s"}`, name, name))
		token, _ := got["token"].(string)
		passed, refused := 0, 0
		for range 12 {
			switch status, header, _ := asked(t, base, "GET", "/recommend?user="+name, token, ""); {
			case status == 200:
				passed++
			case status == 429 && header.Get("Retry-After") != "":
				refused++
			}
		}
		if passed < 5 || passed+refused != 12 || refused < 3 { // one a second comes back
			t.Errorf("%s: %d of 12 pass and %d are refused by 429 with Retry-After, want 5 or few more, and the rest", name, passed, refused)
		}
	}
}

func TestModes(t *testing.T) {
	if _, err := newHandler("closed", ratelimit.GCRA{Rate: 1}); err == nil || !strings.Contains(err.Error(), modes) {
		t.Errorf("got %v, want an error that says what there is", err)
	}
	if _, err := newHandler("gateway", ratelimit.GCRA{Rate: -1}); err == nil {
		t.Error("a limit of -1: no error")
	}
}
