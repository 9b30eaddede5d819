package publish

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/lab/study"
)

// TestPlaces finds files of a module below the repository's root, as a program names them.
func TestPlaces(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		".git/HEAD": "", "shop/go.mod": "module example.com/shop\n\ngo 1.26\n", "shop/audit/audit.go": "package audit\n", "blog/go.mod": "module example.com/blog\n\ngo 1.26\n", "blog/main.go": "package main\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	t.Chdir(filepath.Join(root, "shop"))
	places := findPlaces(&study.Study{Arms: []study.Arm{{Go: "../blog"}}})
	for file, want := range map[string]string{
		"example.com/shop/audit/audit.go":           "shop/audit/audit.go",
		"example.com/blog/main.go":                  "blog/main.go",
		"example.com/blog@v0.0.0-00010101/main.go":  "blog/main.go",
		"example.com/blogs/main.go":                 "",
		filepath.Join(root, "shop/audit/audit.go"):  "shop/audit/audit.go",
		"example.com/shop/audit/gone.go":            "",
		"example.com/shop/../../../../etc/hostname": "",
		"runtime/proc.go":                           "",
		"/etc/hostname":                             "",
		"":                                          "",
	} {
		if got := places(file); got != want {
			t.Errorf("%q is at %q, want %q", file, got, want)
		}
	}
}
