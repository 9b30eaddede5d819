package forge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/cmd/tare/internal/forge"
)

// note is a comment in the fake.
type note struct {
	ID      int64  `json:"id"`
	Body    string `json:"body"`
	System  bool   `json:"system"`
	HTMLURL string `json:"html_url,omitempty"`
}

// fake is the part of an interface that comments on one pull request, as its
// documentation says: docs.github.com/rest/issues/comments, docs.gitlab.com/api/notes.
type fake struct {
	*httptest.Server
	comments, one string // paths: of all, and of one with a trailing slash
	edit          string // method
	allowed       func(*http.Request) bool
	refuse        func(http.ResponseWriter)
	notes         []note
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.allowed(r) {
		f.refuse(w)
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Path == f.comments:
		f.list(w, r)
	case r.Method == http.MethodPost && r.URL.Path == f.comments:
		n := note{ID: int64(len(f.notes)) + 5_000_000_000, Body: bodyOf(r)}
		n.HTMLURL = fmt.Sprintf("https://forge.example/7#%d", n.ID)
		f.notes = append(f.notes, n)
		w.WriteHeader(http.StatusCreated)
		json.NewEncoder(w).Encode(n)
	case r.Method == f.edit && strings.HasPrefix(r.URL.Path, f.one):
		id, _ := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, f.one), 10, 64)
		for i := range f.notes {
			if f.notes[i].ID == id {
				f.notes[i].Body = bodyOf(r)
				json.NewEncoder(w).Encode(f.notes[i])
				return
			}
		}
		fallthrough
	default:
		http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
	}
}

// list gives a page, and in Link that another follows.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	per, _ := strconv.Atoi(r.FormValue("per_page"))
	page, _ := strconv.Atoi(r.FormValue("page"))
	from, to := min((page-1)*per, len(f.notes)), min(page*per, len(f.notes))
	if to < len(f.notes) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next", <x>; rel="last"`, f.URL, f.comments, page+1))
	}
	json.NewEncoder(w).Encode(f.notes[from:to])
}

func bodyOf(r *http.Request) string {
	var sent struct {
		Body string `json:"body"`
	}
	if r.Header.Get("Content-Type") != "application/json" {
		return ""
	}
	json.NewDecoder(r.Body).Decode(&sent)
	return sent.Body
}

func (f *fake) start(t *testing.T) {
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
}

// event writes the file that GitHub Actions names in GITHUB_EVENT_PATH.
func event(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "event.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// gitHub is a fake with the environment of a job of GitHub Actions.
func gitHub(t *testing.T) (*fake, map[string]string) {
	f := &fake{comments: "/repos/octo/shop/issues/7/comments", one: "/repos/octo/shop/issues/comments/", edit: http.MethodPatch}
	f.allowed = func(r *http.Request) bool {
		return r.Header.Get("Authorization") == "Bearer t0ken" && r.Header.Get("Accept") == "application/vnd.github+json" && r.Header.Get("X-GitHub-Api-Version") == "2022-11-28"
	}
	f.refuse = func(w http.ResponseWriter) {
		w.Header().Set("X-Accepted-GitHub-Permissions", "issues=write; pull_requests=write")
		http.Error(w, `{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com/rest"}`, http.StatusForbidden)
	}
	f.start(t)
	return f, map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_TOKEN": "t0ken", "GITHUB_REPOSITORY": "octo/shop", "GITHUB_API_URL": f.URL,
		"GITHUB_EVENT_PATH": event(t, `{"action":"opened","pull_request":{"number":7}}`)}
}

// gitLab is the same of GitLab CI.
func gitLab(t *testing.T) (*fake, map[string]string) {
	const notes = "/api/v4/projects/42/merge_requests/7/notes"
	f := &fake{comments: notes, one: notes + "/", edit: http.MethodPut}
	f.allowed = func(r *http.Request) bool { return r.Header.Get("PRIVATE-TOKEN") == "t0ken" }
	f.refuse = func(w http.ResponseWriter) {
		http.Error(w, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`, http.StatusForbidden)
	}
	f.start(t)
	return f, map[string]string{"GITLAB_CI": "true", "GITLAB_TOKEN": "t0ken", "CI_API_V4_URL": f.URL + "/api/v4", "CI_PROJECT_ID": "42", "CI_MERGE_REQUEST_IID": "7", "CI_PROJECT_PATH": "octo/shop"}
}

var forges = map[string]func(*testing.T) (*fake, map[string]string){"GitHub": gitHub, "GitLab": gitLab}

// TestComment posts, updates behind a page of others' comments, and keeps subjects apart.
func TestComment(t *testing.T) {
	for name, begin := range forges {
		t.Run(name, func(t *testing.T) {
			f, vars := begin(t)
			f.notes = append(f.notes, note{ID: 1, Body: "<!-- tare: shop -->\nby the forge itself", System: true}, note{ID: 2, Body: "see <!-- tare: shop -->"})
			for i := range 150 {
				f.notes = append(f.notes, note{ID: int64(i) + 3, Body: "looks good to me"})
			}
			before := len(f.notes)
			pull, err := forge.Find(env(vars))
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				marker, text string
				notes        int // beyond those of others
			}{{"tare: shop", "first", 1}, {"tare: shop", "second", 1}, {"tare: blog", "other", 2}, {"tare: shop", "third\nline", 2}} {
				if _, err := pull.Comment(t.Context(), step.marker, step.text); err != nil {
					t.Fatalf("%s: %v", step.text, err)
				}
				if got := len(f.notes) - before; got != step.notes {
					t.Fatalf("after %q there are %d comments of ours, want %d", step.text, got, step.notes)
				}
			}
			if got, want := f.notes[before].Body, "<!-- tare: shop -->\nthird\nline"; name == "GitHub" && got != want {
				t.Errorf("the comment is %q, want %q", got, want)
			}
			if f.notes[0].Body != "<!-- tare: shop -->\nby the forge itself" && name == "GitLab" {
				t.Errorf("a note of the forge itself was replaced: %q", f.notes[0].Body)
			}
		})
	}
}

// A comment of another author, such as of a token that was replaced, cannot be changed: there is
// a new one then, which the next push changes.
func TestCommentOfAnother(t *testing.T) {
	for name, begin := range forges {
		f, vars := begin(t)
		f.notes = []note{{ID: 7, Body: "<!-- tare: shop -->\nof another"}}
		allowed := f.allowed
		f.allowed = func(r *http.Request) bool { return allowed(r) && r.URL.Path != f.one+"7" }
		pull, err := forge.Find(env(vars))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"first", "second"} {
			if _, err := pull.Comment(t.Context(), "tare: shop", text); err != nil {
				t.Fatalf("%s: %s: %v", name, text, err)
			}
		}
		if len(f.notes) != 2 || f.notes[1].Body != "<!-- tare: shop -->\nsecond" {
			t.Errorf("%s: the comments are %+v, want one of ours behind the other", name, f.notes)
		}
	}
}

// TestRefused wants what the token lacks in the error.
func TestRefused(t *testing.T) {
	for name, want := range map[string][]string{
		"GitHub": {"octo/shop#7", "Resource not accessible by integration", "pull_requests=write", "`permissions: pull-requests: write`", "fork"},
		"GitLab": {"octo/shop!7", "insufficient_scope", "scope api", "role Reporter"},
	} {
		_, vars := forges[name](t)
		for _, key := range []string{"GITHUB_TOKEN", "GITLAB_TOKEN"} {
			vars[key] = "wrong"
		}
		pull, err := forge.Find(env(vars))
		if err != nil {
			t.Fatal(err)
		}
		_, err = pull.Comment(t.Context(), "tare: shop", "x")
		if !errors.Is(err, forge.ErrNotAllowed) {
			t.Errorf("%s: error %v, want one that wraps ErrNotAllowed", name, err)
			continue
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: error %q, want it to say %q", name, err, text)
			}
		}
	}
}

// TestTokenStays wants a redirection to another host refused, which would get the token.
func TestTokenStays(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was asked at the other host", r.Method, r.URL)
		io.WriteString(w, "[]")
	}))
	defer other.Close()
	for name, begin := range forges {
		f, vars := begin(t)
		f.allowed = func(*http.Request) bool { return false }
		f.refuse = func(w http.ResponseWriter) {
			w.Header().Set("Location", other.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
		pull, err := forge.Find(env(vars))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pull.Comment(t.Context(), "tare: shop", "x"); err == nil || !strings.Contains(err.Error(), "307") {
			t.Errorf("%s: error %v, want the redirection named", name, err)
		}
	}
}

// A page, such as one to log in, answers in place of the interface: the error says where.
func TestNoInterface(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }))
	defer page.Close()
	_, vars := gitHub(t)
	vars["GITHUB_API_URL"] = page.URL
	pull, err := forge.Find(env(vars))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pull.Comment(t.Context(), "tare: shop", "x"); err == nil || !strings.Contains(err.Error(), "GET "+page.URL+"/repos/octo/shop/issues/7/comments") {
		t.Errorf("got %v, want an error that names what was asked", err)
	}
}

func TestFind(t *testing.T) {
	without := func(vars map[string]string, name string) map[string]string { delete(vars, name); return vars }
	with := func(vars map[string]string, name, value string) map[string]string { vars[name] = value; return vars }
	hub := func() map[string]string { _, vars := gitHub(t); return vars }
	lab := func() map[string]string { _, vars := gitLab(t); return vars }
	for _, tt := range []struct {
		name string
		vars map[string]string
		is   error  // nil: any
		says string // "" = no error
	}{
		{"at a terminal", nil, forge.ErrNoCI, "neither"},
		{"a pull request", hub(), nil, ""},
		{"a comment on one", with(hub(), "GITHUB_EVENT_PATH", event(t, `{"issue":{"number":7,"pull_request":{"url":"x"}}}`)), nil, ""},
		{"a comment on an issue", with(hub(), "GITHUB_EVENT_PATH", event(t, `{"issue":{"number":7}}`)), forge.ErrNoPull, "pull request"},
		{"a push", with(hub(), "GITHUB_EVENT_PATH", event(t, `{"ref":"refs/heads/main"}`)), forge.ErrNoPull, "pull request"},
		{"no event", with(hub(), "GITHUB_EVENT_PATH", "/nowhere/event.json"), nil, "GITHUB_EVENT_PATH"},
		{"no JSON", with(hub(), "GITHUB_EVENT_PATH", event(t, `x`)), nil, "reading"},
		{"no token of GitHub", without(hub(), "GITHUB_TOKEN"), forge.ErrNotAllowed, "GITHUB_TOKEN: ${{ github.token }}"},
		{"a merge request", lab(), nil, ""},
		{"a branch", without(lab(), "CI_MERGE_REQUEST_IID"), forge.ErrNoPull, "pull request"},
		{"no token of GitLab", without(lab(), "GITLAB_TOKEN"), forge.ErrNotAllowed, "role Reporter and the scope api"},
		{"no project", without(lab(), "CI_PROJECT_ID"), nil, "CI_PROJECT_ID"},
	} {
		_, err := forge.Find(env(tt.vars))
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: error %v, want %q (%v)", tt.name, err, tt.says, tt.is)
		}
	}
}
