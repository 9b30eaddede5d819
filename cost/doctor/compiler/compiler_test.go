package compiler_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/cost/doctor/compiler"
)

const program = `package main

type config struct{ names [100]string }

func capture(c *config) func() string {
	own := *c
	return func() string {
		own.names[0] += "x"
		return own.names[0]
	}
}

func loop(n int) {
	for i := 0; i < n; i++ {
		defer println(i)
	}
}

func main() {
	c := &config{}
	println(capture(c)())
	loop(3)
	defer println("once")
}
`

func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAsk builds a program and wants the compiler's word on it, at the lines
// where it stands.
func TestAsk(t *testing.T) {
	dir := write(t, map[string]string{"go.mod": "module example.org/shop\n\ngo 1.26\n", "main.go": program})
	all, err := compiler.Ask(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "main.go")
	for _, want := range []compiler.Decision{
		{Kind: compiler.Escape, File: file, Line: 6, Text: "moved to heap: own"},
		{Kind: compiler.Escape, File: file, Line: 7, Text: "func literal escapes to heap"},
		{Kind: compiler.Defer, File: file, Line: 15, Text: "heap-allocated defer"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%+v is not among %+v", want, all)
		}
	}
	for _, d := range all {
		if d.File == file && (d.Line == 20 || d.Line == 23) {
			t.Errorf("%+v: line %d keeps nothing on the heap", d, d.Line)
		}
	}
	again, err := compiler.Ask(context.Background(), dir)
	if err != nil || !slices.Equal(again, all) {
		t.Errorf("asked again: %d decisions, %v, want the same %d from the cache", len(again), err, len(all))
	}
}

func TestAskRefused(t *testing.T) {
	dir := write(t, map[string]string{"go.mod": "module example.org/shop\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { undefined() }\n"})
	if _, err := compiler.Ask(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("error %v, want what does not compile", err)
	}
	if _, err := compiler.Ask(context.Background(), filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there: no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := compiler.Ask(ctx, dir); err == nil {
		t.Error("interrupted: no error")
	}
}

func TestLines(t *testing.T) {
	const out = `# example.org/shop
./cart.go:4:6: can inline h
cart.go:9:2: moved to heap: own
cart.go:9:2: moved to heap: own
/usr/lib/go/src/sync/pool.go:3:1: new(any) escapes to heap
cart.go:12:9: leaking param: c
cart.go:x:9: moved to heap: odd
cart.go:14:3: heap-allocated defer
`
	want := []compiler.Decision{
		{Kind: compiler.Escape, File: "/src/shop/cart.go", Line: 9, Text: "moved to heap: own"},
		{Kind: compiler.Escape, File: "/usr/lib/go/src/sync/pool.go", Line: 3, Text: "new(any) escapes to heap"},
		{Kind: compiler.Defer, File: "/src/shop/cart.go", Line: 14, Text: "heap-allocated defer"},
	}
	if got := compiler.Lines("/src/shop", []byte(out)); !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a.go:1:2: moved to heap: x\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, d := range compiler.Lines("/src", out) {
			if d.File == "" || d.Text == "" {
				t.Errorf("%+v of %q", d, out)
			}
		}
	})
}
