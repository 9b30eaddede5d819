package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/load/source"
)

func TestHAR(t *testing.T) {
	got, warnings, err := source.ReadFile("testdata/shop.har")
	if err != nil {
		t.Fatal(err)
	}
	want := []source.Request{
		{Method: "GET", Path: "/orders/7?full=1", Header: []source.Field{{"Accept", "application/json"}}, Weight: 2},
		{Method: "POST", Path: "/orders", Header: []source.Field{{"Content-Type", "application/json"}}, Body: `{"id":8}`, Weight: 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if len(warnings) != 2 {
		t.Errorf("warnings %v, want one for the data URL and one for the other host", warnings)
	}
}

// Some programs begin a file with a mark of its encoding.
func TestByteOrderMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marked.har")
	text := "\ufeff" + `{"log": {"entries": [{"request": {"method": "GET", "url": "http://shop.example/"}}]}}`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, _, err := source.ReadFile(path); err != nil || len(got) != 1 || got[0].Path != "/" {
		t.Errorf("got %+v, %v, want a request for /", got, err)
	}
}

// An archive of many different requests takes no time that grows by its square.
func TestLargeArchive(t *testing.T) {
	const entries = 200_000
	text := []byte(`{"log": {"entries": [{}`)
	for i := range entries {
		text = fmt.Appendf(text, `,{"request":{"method":"GET","url":"http://shop.example/%d"}}`, i)
	}
	path := filepath.Join(t.TempDir(), "large.har")
	if err := os.WriteFile(path, append(text, "]}}"...), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got, _, err := source.ReadFile(path)
	if took := time.Since(began); err != nil || len(got) != entries || took > 30*time.Second {
		t.Errorf("got %d requests after %v, %v, want %d within seconds", len(got), took, err, entries)
	}
}

func TestOpenAPI(t *testing.T) {
	got, warnings, err := source.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []source.Request{
		{Method: "GET", Path: "/v1/invoices/12345678901", Weight: 1},
		{Method: "GET", Path: "/v1/orders/7?full=true", Header: []source.Field{{"X-Tenant", "blue"}}, Weight: 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if len(warnings) != 3 || !strings.Contains(warnings[0].Error(), `"name" has no example`) || !strings.Contains(warnings[1].Error(), `"" has no example`) ||
		!strings.Contains(warnings[2].Error(), "ignoring 1 operations, POST /orders the first") {
		t.Errorf("warnings %v, want one for each parameter of customers, and one for what is not GET", warnings)
	}
}

func TestRefused(t *testing.T) {
	for name, content := range map[string]string{
		"text": "hello", "broken.har": `{"log": {"entries": [`, "empty.har": `{"log": {"entries": []}}`,
		"broken.yaml": "openapi: [", "none.yaml": "openapi: 3.0.0\ninfo: {title: x, version: '1'}\npaths: {}\n",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, _, err := source.ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, error %v; want an error that names the file", name, got, err)
		}
	}
}

func FuzzReadFile(f *testing.F) {
	for _, name := range []string{"testdata/shop.har", "testdata/shop.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		all, _, err := source.ReadFile(path)
		if err == nil && len(all) == 0 {
			t.Error("neither requests nor an error")
		}
		for _, r := range all {
			if !strings.HasPrefix(r.Path, "/") || r.Weight < 1 {
				t.Errorf("request %+v", r)
			}
		}
	})
}
