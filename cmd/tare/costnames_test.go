package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// TestCostHostileNames has a profile whose names would colour a terminal, ring its
// bell, break lines and add fields; all of that is to be seen, and to do nothing.
func TestCostHostileNames(t *testing.T) {
	const raw, want = "\x1b[31m\a\n\t;x", `\x1b[31m\a\n\t;x`
	spot := strings.Repeat("Z", len(raw))
	var packed bytes.Buffer
	frames := []cost.Frame{
		{Func: "shop.(*" + spot + ").ServeHTTP", File: "/src/" + spot + ".go", Line: 8, Decl: 7},
		{Func: "net/http.serverHandler.ServeHTTP"}, {Func: "net/http.(*conn).serve"},
	}
	if err := pprof.New(pprof.CPU, time.Second, []cost.Stack{{Frames: frames, Count: 100, Value: 1e9}}).Write(&packed); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, folded, html := filepath.Join(dir, "cpu.pb"), filepath.Join(dir, "stacks.txt"), filepath.Join(dir, "cost.html")
	if err := os.WriteFile(file, bytes.ReplaceAll(plain, []byte(spot), []byte(raw)), 0o600); err != nil {
		t.Fatal(err)
	}
	var table, errs bytes.Buffer
	args := []string{"cost", "--profile", file, "--folded", folded, "--html", html}
	if status := run(t.Context(), args, &cli.Terminal{Out: &table, Err: &errs, Width: 200}); status != 0 {
		t.Fatalf("tare %v: exit status %d\n%s", args, status, errs.String())
	}
	shown := map[string]string{"table": table.String()}
	for what, name := range map[string]string{"folded": folded, "html": html} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		shown[what] = string(text)
	}
	for what, text := range shown {
		name := want
		if what == "folded" {
			name = strings.ReplaceAll(want, ";", ",") // which parts functions
		}
		if at := regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f]`).FindStringIndex(text); at != nil || !strings.Contains(text, name) {
			t.Errorf("%s: control character at %v, want none, and %s\n%s", what, at, name, text)
		}
	}
	if lines := strings.Split(shown["folded"], "\n"); len(lines) != 2 || strings.Count(lines[0], ";") != 4 || strings.ContainsAny(lines[0], "\t\x1b") {
		t.Errorf("got %q, want one line of owner, cause and three functions", lines)
	}
}
