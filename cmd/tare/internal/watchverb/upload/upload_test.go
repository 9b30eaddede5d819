package upload_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/watchverb/upload"
)

type asked struct {
	path, tenant, body string
}

// receive starts a server that keeps what it is asked.
func receive(t *testing.T, status int) (url string, all func() []asked) {
	t.Helper()
	var mu sync.Mutex
	var seen []asked
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, asked{r.Method + " " + r.URL.Path, r.Header.Get("X-Scope-OrgID"), string(body)})
		w.WriteHeader(status)
		io.WriteString(w, "so it is")
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []asked {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// TestForms has each server asked as its documentation says.
func TestForms(t *testing.T) {
	t.Setenv(upload.Variable, "X-Scope-OrgID=team%20a")
	const name = `[{"name":"__name__","value":"process_cpu"},{"name":"service_name","value":"shop"},{"name":"build","value":"x"}]`
	id := regexp.MustCompile(`"ID":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",`)
	for path, want := range map[string]asked{
		"":                         {"POST /push.v1.PusherService/Push", "team a", `{"series":[{"labels":` + name + `,"samples":[{"ID",`},
		"/api/profiles/writeraw":   {"POST /api/profiles/writeraw", "team a", `{"series":[{"labels":{"labels":` + name + `},"samples":[{`},
		"/x/api/profiles/writeraw": {"POST /x/api/profiles/writeraw", "team a", `{"series":[{"labels":{"labels":` + name + `},"samples":[{`},
	} {
		url, all := receive(t, 200)
		s, err := upload.Open(url + path)
		if err != nil {
			t.Fatal(err)
		}
		s.Send(&upload.Profile{Service: "shop", Build: "x", PProf: []byte("profile")})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		want.body += `"rawProfile":"cHJvZmlsZQ=="}]}]}`
		if !json.Valid([]byte(all()[0].body)) {
			t.Errorf("%s: %s is no JSON", path, all()[0].body)
		}
		got := all()[0]
		got.body = id.ReplaceAllString(got.body, `"ID",`)
		if len(all()) != 1 || got != want {
			t.Errorf("%s:\n got %q\nwant %q", path, got, want)
		}
	}
}

// TestStalled has a server that answers nothing. What still waits at the end is lost, and told.
func TestStalled(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then it sees the sender go
		<-r.Context().Done()
	}))
	defer silent.Close()
	s, err := upload.Open(silent.URL)
	if err != nil {
		t.Fatal(err)
	}
	upload.Hurry(s, 50*time.Millisecond)
	for range 3 {
		s.Send(&upload.Profile{PProf: []byte("x")})
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "3 profiles were lost: the server did not take them in time") {
		t.Errorf("got %v, want all three lost, and why", err)
	}
}

// TestLost tells of profiles that did not arrive.
func TestLost(t *testing.T) {
	url, _ := receive(t, 422)
	s, err := upload.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	s.Send(&upload.Profile{PProf: []byte("x")})
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), `1 profiles were lost`) || !strings.Contains(err.Error(), `422 Unprocessable Entity: "so it is"`) {
		t.Errorf("got %v, want what the server said", err)
	}
	for _, raw := range []string{"ftp://localhost", "http://", "http://ada:secret%@localhost"} {
		if _, err := upload.Open(raw); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error without the password", raw, err)
		}
	}
}
