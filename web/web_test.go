package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/web"
	"github.com/tarehq/tare/web/history"
	"github.com/tarehq/tare/web/history/historytest"
)

// site is a server over a folder of runs.
type site struct {
	*httptest.Server
	root  string
	index *history.Index
}

const token = "0123456789abcdef"

func serve(t testing.TB, root string) *site {
	t.Helper()
	x, err := history.Open(t.Context(), root, filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{httptest.NewServer(web.New(web.Options{Index: x, Token: token})), root, x}
	t.Cleanup(func() {
		s.Close()
		x.Close()
	})
	s.update(t)
	return s
}

// update takes over what changed in the folder.
func (s *site) update(t testing.TB) {
	t.Helper()
	if _, err := s.index.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.index.Analyse(t.Context(), 1000, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// get asks for a page and returns its status and text.
func (s *site) get(t testing.TB, path string) (int, string, http.Header) {
	t.Helper()
	res, err := http.Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text), res.Header
}

// makeHistory makes runs of which the first arm changes at the twelfth.
func makeHistory(t testing.TB, root string) (names []string) {
	for day := range 20 {
		r := historytest.Run{Day: day + 1, Factor: 1.2, Commit: fmt.Sprintf("c%02d", day), Arms: []string{"api", "b", "c", "d"}, Floor: 0.02}
		if day >= 12 {
			r.Factor = 1.35
		}
		names = append(names, historytest.Write(t, root, r))
	}
	return names
}

var tag = regexp.MustCompile(`<[^>]+>`)

func TestPages(t *testing.T) {
	root := t.TempDir()
	names := makeHistory(t, root)
	a := historytest.Write(t, root, historytest.Run{Study: "owners", Day: 40, Profiled: 50_000})
	b := historytest.Write(t, root, historytest.Run{Study: "owners", Day: 41, Profiled: 80_000})
	lone := historytest.Write(t, root, historytest.Run{Study: "lone", Day: 42, Build: "other"})
	s := serve(t, root)
	cell := "arm=api&workload=load"
	for path, wants := range map[string][]string{
		"/":                                     {"1 to 23 of 23 runs", names[0], "more CPU", "decided"},
		"/?q=lone":                              {"1 to 1 of 1 run", lone},
		"/?study=none":                          {"No run matches"},
		"/?page=9999999999999999999":            {"1 to 23"},
		"/runs/" + names[0]:                     {"more CPU", "How far to trust", "Report as one file"},
		"/runs/" + names[0] + "/live":           {"ended: decided", "The last trials", " % interval +"},
		"/runs/" + a:                            {"api under load", "5"},
		"/studies":                              {"release", "20", "owners"},
		"/studies/release":                      {"1 change suspected over 20 runs", "c12", "step", "±2.0 %", names[12], "Confirm it in fresh processes"},
		"/studies/release?arm=b":                {"CPU per request of b", "None was found."},
		"/studies/release?of=nonsense&arm=none": {"CPU per request of api"},
		"/studies/lone":                         {"A change can be found from 8 runs on, and this arm has 1."},
		"/compare":                              {"Compare two runs"},
		"/compare?a=" + a + "&b=" + b:           {"through the control base", "api under load"},
		"/compare?a=" + a + "&b=" + lone:        {"cannot be compared", "different programs"},
		"/compare/owners?a=" + a + "&b=" + b + "&" + cell: {"(*Guard).ServeHTTP", "30.6 µs"},
		"/runs/" + a + "/cost?" + cell:                    {"(*Guard).ServeHTTP", "<svg"},
		"/runs/" + a + "/report":                          {"<script>", "more CPU"},
		"/claims":                                         {"P1.nesting", "came with tare"},
		"/leaderboard":                                    {"release: CPU per request", "tier", "base", " % interval +"},
		"/leaderboard?study=release&metric=none":          {"release: CPU per request"},
	} {
		status, page, header := s.get(t, path)
		if status != http.StatusOK {
			t.Errorf("%s: status %d, want 200:\n%s", path, status, tag.ReplaceAllString(page, ""))
			continue
		}
		for _, want := range wants {
			if !strings.Contains(page, want) && !strings.Contains(strings.Join(strings.Fields(tag.ReplaceAllString(page, " ")), " "), want) {
				t.Errorf("%s: %q is not in it", path, want)
			}
		}
		policy := header.Get("Content-Security-Policy")
		own := strings.HasPrefix(policy, "sandbox ")
		if !strings.Contains(policy, "default-src 'none'") || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: got the header %v", path, header)
		}
		if !own {
			checkPage(t, path, page)
		}
		if strings.Contains(page, root) {
			t.Errorf("%s: says where the runs lie", path)
		}
	}
	for path, want := range map[string]int{
		"/nothing": 404, "/runs/none": 404, "/runs/none/events": 404, "/studies/none": 404, "/runs/" + a + "/cost?arm=x&workload=load": 404, "/leaderboard?study=none": 404,
		"/compare?a=" + a + "&b=" + a: 422, "/compare?a=none&b=" + a: 404, "/upload": 404, "/style.css": 200, "/live.js": 200,
	} {
		if got, _, _ := s.get(t, path); got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
}

// checkPage wants what a reader without sight or scripts needs.
func checkPage(t *testing.T, path, page string) {
	t.Helper()
	for want, n := range map[string]int{"<h1": 1, "<main": 1, `lang="en"`: 1, `href="#content"`: 1, `<nav aria-label="Pages">`: 1, " style=": 0, "<script>": 0, "javascript:": 0, " onclick": 0} {
		if got := strings.Count(page, want); got != n {
			t.Errorf("%s: %q is there %d times, want %d", path, want, got, n)
		}
	}
	for _, control := range regexp.MustCompile(`<(select|input)`).FindAllStringIndex(page, -1) {
		before := page[:control[0]]
		if strings.LastIndex(before, "<label>") < strings.LastIndex(before, "</label>") {
			t.Errorf("%s: a field without a label: %.60s", path, page[control[0]:])
		}
	}
	if !strings.Contains(page, "<title>") || strings.Contains(page, "<title></title>") {
		t.Errorf("%s: a page or a drawing without a title", path)
	}
	if tables, captions := strings.Count(page, "<table"), strings.Count(page, "<caption"); tables != captions {
		t.Errorf("%s: %d tables have %d captions", path, tables, captions)
	}
}

// TestStrangers has every text that a run's folder holds be markup, and finds none of it.
func TestStrangers(t *testing.T) {
	const evil = `<img src=x onerror=alert(1)>"'`
	root := t.TempDir()
	var names []string
	for day := range 9 {
		names = append(names, historytest.Write(t, root, historytest.Run{Study: evil, Title: evil, Day: day + 1, Machine: evil, Commit: evil, Arms: []string{"x" + evil, "b" + evil, "c", "d"},
			Factor: 1 + 0.5*float64(day/5)}))
	}
	if err := os.WriteFile(filepath.Join(root, names[0], "manifest.json"), []byte(`{"schema": "`+strings.ReplaceAll(evil, `"`, ``)+`"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	s := serve(t, root)
	run := url.PathEscape(names[8])
	study := url.PathEscape(evil)
	for _, path := range []string{"/", "/?q=" + url.QueryEscape(evil) + "&study=" + url.QueryEscape(evil), "/runs/" + run, "/runs/" + run + "/live", "/runs/" + run + "/report", "/studies", "/studies/" + study,
		"/runs/" + url.PathEscape(names[0]), "/studies/" + study + "?control=any&arm=" + url.QueryEscape("b"+evil), "/compare?a=" + run + "&b=" + url.PathEscape(names[7]), "/compare?a=" + url.QueryEscape(evil) + "&b=x",
		"/leaderboard?study=" + url.QueryEscape(evil), "/runs/" + study, "/studies/x" + study} {
		status, page, _ := s.get(t, path)
		if status >= 500 {
			t.Errorf("%s: status %d", path, status)
		}
		if strings.Contains(page, "<img") || strings.Contains(page, `onerror=alert(1)>"`) {
			at := strings.Index(page, "<img")
			t.Errorf("%s: has the stranger's markup: %.80s", path, page[max(0, at-20):])
		}
	}
}

// TestOutside asks for what lies beside the runs' folder.
func TestOutside(t *testing.T) {
	outer := t.TempDir()
	root := filepath.Join(outer, "runs")
	historytest.Write(t, root, historytest.Run{})
	secret := historytest.Write(t, outer, historytest.Run{Study: "secret"})
	if err := os.Symlink(filepath.Join(outer, secret), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	s := serve(t, root)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, name := range []string{"..%2f" + secret, "..%2F..%2F..%2Fetc", "%2e%2e%2f" + secret, "..%5c" + secret, ".", "..", "%00", "link", "%2fetc", strings.Repeat("a", 5000)} {
		for _, below := range []string{"", "/report", "/live", "/events", "/cost?arm=api&workload=load"} {
			res, err := client.Get(s.URL + "/runs/" + name + below)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode == http.StatusOK || res.StatusCode >= 500 || bytes.Contains(text, []byte("secret")) && !strings.Contains(name, "secret") {
				t.Errorf("%s%s: status %d", name, below, res.StatusCode)
			}
		}
	}
}

// TestHosts answers only those who ask for this machine by its name or address.
func TestHosts(t *testing.T) {
	s := serve(t, t.TempDir())
	for host, want := range map[string]int{"": 200, "localhost:8273": 200, "[::1]:8273": 200, "127.0.0.2": 200, "evil.example": 421, "127.0.0.1.evil.example:80": 421, "10.0.0.1": 421} {
		r, err := http.NewRequest("GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("host %q: status %d, want %d", host, res.StatusCode, want)
		}
	}
}

// send uploads an archive and returns the answer.
func send(t *testing.T, server, auth string, body []byte) (int, string) {
	t.Helper()
	r, err := http.NewRequest("POST", server+"/upload", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestUploadTroubled gives an upload up of which nothing comes any more, since others wait for it,
// and takes a run while the database is away: its folder is there.
func TestUploadTroubled(t *testing.T) {
	root := t.TempDir()
	s := serve(t, root)
	run, err := os.ReadFile(filepath.Join("..", "lab", "report", "testdata", "runs", "nesting.zip"))
	if err != nil {
		t.Fatal(err)
	}
	pages := s.Config.Handler.(*web.Site)
	web.SetPatience(pages, 100*time.Millisecond)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /upload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nPK", token)
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 400 {
		t.Fatalf("an upload of which nothing comes any more: got %v, %v, want it given up", res, err)
	}
	web.SetPatience(pages, time.Minute)
	if err := s.index.Close(); err != nil {
		t.Fatal(err)
	}
	if status, text := send(t, s.URL, "Bearer "+token, run); status != 201 {
		t.Errorf("without a database: got %d %q, want the run taken", status, text)
	}
	if all, err := record.List(root); err != nil || len(all) != 1 {
		t.Errorf("without a database: the folder holds %v, %v, want the run", all, err)
	}
}

func TestUpload(t *testing.T) {
	root := t.TempDir()
	s := serve(t, root)
	run, err := os.ReadFile(filepath.Join("..", "lab", "report", "testdata", "runs", "nesting.zip"))
	if err != nil {
		t.Fatal(err)
	}
	killed, going := filepath.Join(root, ".upload-1"), filepath.Join(root, ".upload-2")
	for dir, age := range map[string]time.Duration{killed: time.Hour, going: time.Minute} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, auth string
		body       []byte
		want       int
		text       string
	}{
		{"no token", "", run, 401, "Authorization: Bearer TOKEN"},
		{"a wrong token", "Bearer 0123456789abcdeF", run, 401, "Authorization"},
		{"another scheme", "Basic " + token, run, 401, "Authorization"},
		{"no archive", "Bearer " + token, []byte("hello"), 422, "This is no run"},
		{"half", "Bearer " + token, run[:len(run)/2], 422, "This is no run"},
		{"a run", "Bearer " + token, run, 201, `"path":"/runs/`},
		{"again", "Bearer " + token, run, 409, "already"},
	} {
		if status, text := send(t, s.URL, c.auth, c.body); status != c.want || !strings.Contains(text, c.text) || strings.Contains(text, root) {
			t.Errorf("%s: got %d %q, want %d with %q", c.name, status, text, c.want, c.text)
		}
	}
	if err := os.Remove(going); err != nil {
		t.Errorf("the upload that goes on: %v", err)
	}
	entries, err := os.ReadDir(root) // without what the killed one left
	if err != nil || len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), "-nesting") {
		t.Fatalf("the folder holds %v, %v, want the run alone", entries, err)
	}
	if status, page, _ := s.get(t, "/runs/"+entries[0].Name()); status != 200 || !strings.Contains(page, "Report as one file") {
		t.Errorf("the run's page: status %d", status)
	}
	closed := httptest.NewServer(web.New(web.Options{Index: s.index}))
	defer closed.Close()
	if status, text := send(t, closed.URL, "Bearer ", run); status != 403 || !strings.Contains(text, "--upload-token-file") {
		t.Errorf("without a token of its own: got %d %q, want 403 and how to allow it", status, text)
	}
}

// TestLive follows a run that goes on to its end.
func TestLive(t *testing.T) {
	root := t.TempDir()
	name := historytest.Write(t, root, historytest.Run{Unended: true, Blocks: 3})
	s := serve(t, root)
	if _, page, _ := s.get(t, "/"); !strings.Contains(page, "/runs/"+name+"/live") || !strings.Contains(page, "running") {
		t.Error("the list does not lead to the live view")
	}
	if _, page, _ := s.get(t, "/runs/"+name+"/live"); !strings.Contains(page, `data-events="/runs/`+name+`/events"`) || !strings.Contains(page, `http-equiv="refresh"`) || !strings.Contains(page, "6, 6 of them valid") {
		t.Error("the live view shows no trials, or follows nothing")
	}
	res, err := http.Get(s.URL + "/runs/" + name + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("got the type %q, and that proxies may hold it back", kind)
	}
	events := bufio.NewScanner(res.Body)
	events.Buffer(nil, 1<<20)
	next := func() (kind string, data struct{ HTML, State string }) {
		t.Helper()
		for events.Scan() {
			line := events.Text()
			if value, ok := strings.CutPrefix(line, "event: "); ok {
				kind = value
			}
			if value, ok := strings.CutPrefix(line, "data: "); ok {
				if err := json.Unmarshal([]byte(value), &data); err != nil {
					t.Fatal(err)
				}
				return kind, data
			}
		}
		t.Fatalf("the stream ended: %v", events.Err())
		return
	}
	if kind, data := next(); kind != "part" || !strings.Contains(data.HTML, "6, 6 of them valid") {
		t.Errorf("first: got %s %+v, want 6 trials", kind, data)
	}
	historytest.Append(t, filepath.Join(root, name), 3)
	for { // what was written may be seen in two parts
		kind, data := next()
		if kind != "part" {
			t.Fatalf("got %s %+v, want a part", kind, data)
		}
		if strings.Contains(data.HTML, "8, 8 of them valid") {
			break
		}
	}
	historytest.End(t, filepath.Join(root, name))
	for {
		kind, data := next()
		if kind == "end" {
			if !strings.Contains(data.State, "decided") {
				t.Errorf("at the end: got %+v", data)
			}
			break
		}
	}
	if events.Scan() && events.Scan() {
		t.Errorf("after the end: got %q", events.Text())
	}
}

// TestBrokenOff looks at a run that was killed long ago. Neither its page nor the stream goes on
// for ever, and both say why.
func TestBrokenOff(t *testing.T) {
	root := t.TempDir()
	name := historytest.Write(t, root, historytest.Run{Unended: true, Blocks: 3})
	long := time.Now().Add(-time.Hour)
	for _, file := range []string{"manifest.json", "trials.jsonl"} {
		if err := os.Chtimes(filepath.Join(root, name, file), long, long); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, root)
	if _, page, _ := s.get(t, "/runs/"+name+"/live"); !strings.Contains(page, "broken off") || strings.Contains(page, "data-events") {
		t.Error("the page follows the run, or does not say that it is broken off")
	}
	client := http.Client{Timeout: 20 * time.Second}
	res, err := client.Get(s.URL + "/runs/" + name + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || strings.Count(string(text), "event: end\n") != 1 || !strings.Contains(string(text), "seems to be broken off") {
		t.Errorf("got %q, %v, want an end, and why", text, err)
	}
}

// TestTurns has pages of profiles and of series wait for their turn: readers cannot have the
// server make many at a time.
func TestTurns(t *testing.T) {
	root := t.TempDir()
	run := historytest.Write(t, root, historytest.Run{Study: "owners", Profiled: 50_000})
	pages := web.New(web.Options{Index: serve(t, root).index})
	paths := []string{"/runs/" + run + "/cost?arm=api&workload=load", "/studies/owners"}
	ask := func(ctx context.Context, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+path, nil))
		return w
	}
	give := web.TakeTurns(pages)
	for _, path := range paths {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if w := ask(ctx, path); w.Body.Len() > 0 {
			t.Errorf("%s: was made beside as many as there may be", path)
		}
		cancel()
	}
	web.SetPatience(pages, 100*time.Millisecond)
	for _, path := range paths {
		if w := ask(t.Context(), path); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "took too long") {
			t.Errorf("%s: got %d %q, want it given up", path, w.Code, w.Body)
		}
	}
	web.SetPatience(pages, time.Minute)
	give()
	for _, path := range paths {
		if w := ask(t.Context(), path); w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: status %d, want the page in its turn", path, w.Code)
		}
	}
}

// BenchmarkRuns makes a page of the list of 10,000 runs, and says how many times faster that
// is than reading their folders, as `tare list` does.
func BenchmarkRuns(b *testing.B) {
	b.ReportAllocs()
	const many = 10_000
	root := b.TempDir()
	name := historytest.Write(b, root, historytest.Run{Blocks: 2})
	for i := 1; i < many; i++ {
		if err := os.CopyFS(filepath.Join(root, fmt.Sprintf("%s-%05d", name, i)), os.DirFS(filepath.Join(root, name))); err != nil {
			b.Fatal(err)
		}
	}
	index, err := history.Open(b.Context(), root, filepath.Join(b.TempDir(), "index.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer index.Close()
	timed := func(do func() error) float64 {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began).Seconds()
	}
	sync := func() error {
		_, err := index.Sync(b.Context())
		return err
	}
	first, again := timed(sync), timed(sync)
	folders := timed(func() error {
		all, err := record.List(root)
		if err == nil && len(all) != many {
			err = fmt.Errorf("%d runs", len(all))
		}
		return err
	})
	handler := web.New(web.Options{Index: index})
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/?page=100", nil))
		if !strings.Contains(w.Body.String(), "4,951 to 5,000 of 10,000 runs") {
			b.Fatalf("status %d: %s", w.Code, tag.ReplaceAllString(w.Body.String(), ""))
		}
	}
	page := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(folders/page, "folders/page")
	b.ReportMetric(first/folders, "sync/folders")
	b.ReportMetric(again/folders, "resync/folders")
}
