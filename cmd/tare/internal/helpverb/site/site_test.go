package site_test

import (
	"encoding/json"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/helpverb/site"
	"github.com/tarehq/tare/docs"
	"github.com/tarehq/tare/internal/chromium"
)

var (
	hrefs = regexp.MustCompile(` (?:href|src)="([^"]*)"`)
	ids   = regexp.MustCompile(` id="([^"]*)"`)
)

// write writes the site and returns its folder and files.
func write(t *testing.T) (dir string, files map[string]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "new", "site")
	if err := site.Write(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return dir, files
}

// TestLinks follows each link: to a page and a place in it, or to a file of the repository.
// Links to the web are not followed.
func TestLinks(t *testing.T) {
	_, files := write(t)
	if got, want := len(files), len(docs.Topics())+3; got != want {
		t.Errorf("got %d files, want %d: a page a topic, styles, script and index", got, want)
	}
	places := map[string]bool{}
	for name, text := range files {
		places[name] = true
		for _, m := range ids.FindAllStringSubmatch(text, -1) {
			places[name+"#"+m[1]] = true
		}
	}
	followed := 0
	for name, text := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		if !strings.Contains(text, "<h1") && !strings.Contains(text, "<h2") || !strings.Contains(text, `aria-current="page"`) {
			t.Errorf("%s has no title, or no place among the pages", name)
		}
		for _, m := range hrefs.FindAllStringSubmatch(text, -1) {
			if check(t, places, name, html.UnescapeString(m[1])) {
				followed++
			}
		}
	}
	if followed < 500 {
		t.Errorf("followed %d links, want 500 or more: are they still found?", followed)
	}
}

// check follows a link of a page, unless it leads to the web.
func check(t *testing.T, places map[string]bool, name, link string) bool {
	t.Helper()
	if file, ours := strings.CutPrefix(link, docs.Repository); ours {
		file, _, _ = strings.Cut(file, "#")
		if _, err := os.Stat(filepath.Join("../../../../..", file)); err != nil {
			t.Errorf("%s links to %s: %v", name, link, err)
		}
		return true
	}
	if strings.Contains(link, "://") || strings.HasPrefix(link, "data:") {
		return false
	}
	to, err := url.PathUnescape(link)
	if err != nil {
		t.Errorf("%s links to %q: %v", name, link, err)
	}
	if strings.HasPrefix(to, "#") {
		to = name + to
	}
	if !places[to] {
		t.Errorf("%s links to %s, which is not there", name, link)
	}
	return true
}

// TestIndex has every page and heading in what is searched, with a link that leads there.
func TestIndex(t *testing.T) {
	_, files := write(t)
	text, ok := strings.CutPrefix(files["index.js"], "window.tareSections = ")
	if !ok {
		t.Fatalf("index.js begins with %q", files["index.js"][:min(40, len(files["index.js"]))])
	}
	var sections []struct{ Page, Title, Link, Text string }
	if err := json.Unmarshal([]byte(text), &sections); err != nil {
		t.Fatal(err)
	}
	headings := 0
	for name, text := range files {
		if strings.HasSuffix(name, ".html") {
			headings += len(regexp.MustCompile(`<h[1-6]`).FindAllString(text, -1))
		}
	}
	if len(sections) != headings {
		t.Errorf("%d sections are searched, want one for each of %d headings", len(sections), headings)
	}
	for _, s := range sections {
		file, id, _ := strings.Cut(s.Link, "#")
		if s.Page == "" || s.Title == "" || id != "" && !strings.Contains(files[file], ` id="`+id+`"`) || files[file] == "" {
			t.Errorf("a section leads nowhere: %+v", s)
		}
	}
}

func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := site.Write(file); err == nil {
		t.Error("a file in place of the folder: no error, want one")
	}
}

// TestSearch types into the search of a page on disk, and follows what it finds.
func TestSearch(t *testing.T) {
	dir, _ := write(t)
	w := chromium.New(t)
	w.Open(t, filepath.Join(dir, "load.html"), chromium.View{Width: 1280, Scheme: "light", Scripts: true})
	first := func(words string) string {
		chromium.Evaluate[bool](t, w, `(() => { const i = document.getElementById("words"); i.value = `+string(mustJSON(t, words))+`;
			i.dispatchEvent(new Event("input")); return true; })()`)
		for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
			if text := chromium.Evaluate[string](t, w, `document.getElementById("count").textContent`); text != "" {
				break
			}
		}
		return chromium.Evaluate[string](t, w, `document.querySelector("#found a")?.getAttribute("href") ?? document.getElementById("count").textContent`)
	}
	w.Picture(t, "site-light.png")
	if got, want := first("COORDINATED omission"), ".html"; !strings.Contains(got, want) {
		t.Errorf("got %q, want a page", got)
	}
	w.Picture(t, "site-found.png")
	if got, want := first("glossary"), "glossary.html"; got != want {
		t.Errorf("glossary: got %q, want %q first", got, want)
	}
	if got, want := first("xyzzy plugh"), "No section has all these words."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Open(t, filepath.Join(dir, "load.html"), chromium.View{Width: 390, Scheme: "dark", Scripts: true})
	w.Picture(t, "site-phone.png")
	if wide := chromium.Evaluate[float64](t, w, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("the page is %v px wide on a phone of 390", wide)
	}
	w.Open(t, filepath.Join(dir, "index.html"), chromium.View{Width: 1280, Scheme: "light"})
	if hidden := chromium.Evaluate[bool](t, w, `document.getElementById("search").hidden`); !hidden {
		t.Error("without scripts a search is offered that cannot work")
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
