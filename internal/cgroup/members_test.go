package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGroup tells control groups, which list their processes, from other folders.
func TestGroup(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"shop", "plain"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"shop/cgroup.procs", "file"} {
		if err := os.WriteFile(name, []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("shop", "link"); err != nil {
		t.Skip(err)
	}
	shop := filepath.Join(dir, "shop")
	for _, tt := range []struct{ name, want, refusal string }{
		{shop, shop, ""},
		{"shop", "shop", ""},
		{"link", "shop", ""}, // its tree is walked
		{"plain", "", "plain: it is a directory, but no control group"},
		{"file", "", "file: there is no such directory"},
		{filepath.Join(dir, "none"), "", "none: there is no such directory"},
	} {
		got, err := Find(tt.name)
		if tt.refusal == "" && (err != nil || got != tt.want) {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
		if tt.refusal != "" && (err == nil || !strings.Contains(err.Error(), tt.refusal)) {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.refusal)
		}
	}
}
