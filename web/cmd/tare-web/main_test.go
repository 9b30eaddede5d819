package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/web/history/historytest"
)

// output is a buffer for several goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// TestRun serves a folder, sees a run that is added, and ends as asked.
func TestRun(t *testing.T) {
	root := t.TempDir()
	first := historytest.Write(t, root, historytest.Run{Day: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out output
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0", "-db", filepath.Join(t.TempDir(), "x", "index.db"), "-reindex", root}, &out)
	}()
	address := regexp.MustCompile(`http://\S+/`)
	await := func(want string) {
		t.Helper()
		page := ""
		for range 400 {
			select {
			case err := <-ended:
				t.Fatalf("ended: %v\n%s", err, &out)
			default:
			}
			if at := address.FindString(out.String()); at != "" {
				if res, err := http.Get(at); err == nil {
					text, _ := io.ReadAll(res.Body)
					res.Body.Close()
					if page = string(text); strings.Contains(page, want) {
						return
					}
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("%q is not in the page:\n%s\n%s", want, page, &out)
	}
	await(first)
	await("more CPU") // it was analysed
	await(historytest.Write(t, root, historytest.Run{Day: 2}))
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v\n%s", err, &out)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("does not end")
	}
}

func TestRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	root, db := t.TempDir(), filepath.Join(t.TempDir(), "index.db")
	short := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(short, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no folder":     {[]string{"-db", db, filepath.Join(root, "none")}, "name the one that holds the runs"},
		"two folders":   {[]string{root, root}, "give one"},
		"taken address": {[]string{"-db", db, "-listen", taken.Addr().String(), root}, "name another address by --listen"},
		"short token":   {[]string{"-db", db, "-upload-token-file", short, root}, "openssl rand -hex 32"},
		"no token":      {[]string{"-db", db, "-upload-token-file", short + "x", root}, "reading the token for uploads"},
		"no such flag":  {[]string{"-nonsense"}, "flag provided but not defined"},
	} {
		var out output
		err := run(t.Context(), c.args, &out)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want one line with %q", name, err, c.want)
		}
	}
}

func TestReadToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("  0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readToken(path); err != nil || got != "0123456789abcdef" {
		t.Errorf("got %q, %v, want the word alone", got, err)
	}
}
