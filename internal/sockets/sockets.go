// Package sockets gives tests paths for Unix sockets.
package sockets

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns a path where nothing is yet, in a folder that is removed when the test
// ends. A socket's path may have 107 bytes: those in t.TempDir have the test's name in
// them, and can be longer.
func Path(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}
