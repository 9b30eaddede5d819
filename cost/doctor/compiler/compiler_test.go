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
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
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

// TestAskElsewhere asks in the package's folder, then in the module's: the go command's
// cache tells paths by where it was asked first.
func TestAskElsewhere(t *testing.T) {
	dir := write(t, map[string]string{
		"go.mod":      "module example.org/shop\n\ngo 1.26\n",
		"pay/card.go": "package pay // " + t.TempDir() + "\n\nfunc New() *int { return new(int) }\n",
	})
	file := filepath.Join(dir, "pay", "card.go")
	for _, at := range []string{"pay", "."} {
		all, err := compiler.Ask(context.Background(), filepath.Join(dir, at))
		if err != nil || len(all) != 1 || all[0].File != file {
			t.Errorf("%s: got %+v, %v, want one of %s", at, all, err, file)
		}
	}
}

// TestAskWorkspace asks about all modules of a workspace, whose own folder is none, and
// about those below a folder in it alone.
func TestAskWorkspace(t *testing.T) {
	dir := write(t, map[string]string{
		"go.work":          "go 1.26\n\nuse (\n\t./front\n\t./lib/cart\n)\n",
		"front/go.mod":     "module example.org/front\n\ngo 1.26\n",
		"front/main.go":    program,
		"lib/cart/go.mod":  "module example.org/cart\n\ngo 1.26\n",
		"lib/cart/cart.go": "package cart\n\nfunc New() *int { return new(int) }\n",
	})
	for _, tt := range []struct {
		dir  string
		want []string
	}{
		{".", []string{"front/main.go", "lib/cart/cart.go"}},
		{"lib", []string{"lib/cart/cart.go"}},
		{"front", []string{"front/main.go"}},
	} {
		all, err := compiler.Ask(context.Background(), filepath.Join(dir, tt.dir))
		if err != nil {
			t.Errorf("%s: %v", tt.dir, err)
		}
		var got []string
		for _, d := range all {
			file, err := filepath.Rel(dir, d.File)
			if err == nil && filepath.IsLocal(file) && !slices.Contains(got, file) {
				got = append(got, file)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: the compiler's word is on %q, want %q", tt.dir, got, tt.want)
		}
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
# example.org/shop/pay
pay/card.go:3:9: moved to heap: own
./card.go:4:9: moved to heap: own
../shop/cart.go:5:9: moved to heap: own
`
	want := []compiler.Decision{
		{Kind: compiler.Escape, File: "/src/shop/cart.go", Line: 9, Text: "moved to heap: own"},
		{Kind: compiler.Escape, File: "/usr/lib/go/src/sync/pool.go", Line: 3, Text: "new(any) escapes to heap"},
		{Kind: compiler.Defer, File: "/src/shop/cart.go", Line: 14, Text: "heap-allocated defer"},
		{Kind: compiler.Escape, File: "/src/shop/pay/card.go", Line: 3, Text: "moved to heap: own"},
		{Kind: compiler.Escape, File: "/src/shop/pay/card.go", Line: 4, Text: "moved to heap: own"},
		{Kind: compiler.Escape, File: "/src/shop/cart.go", Line: 5, Text: "moved to heap: own"},
	}
	packages := map[string]string{"example.org/shop": "/src/shop", "example.org/shop/pay": "/src/shop/pay"}
	if got := compiler.Lines("/src/shop", packages, []byte(out)); !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a.go:1:2: moved to heap: x\n"))
	f.Add([]byte("# b\n./a.go:1:2: moved to heap: x\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		for _, d := range compiler.Lines("/src", map[string]string{"b": "/src/b"}, out) {
			if d.File == "" || d.Text == "" {
				t.Errorf("%+v of %q", d, out)
			}
		}
	})
}
