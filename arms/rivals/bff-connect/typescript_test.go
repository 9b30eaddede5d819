package main

import (
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tarehq/tare/arms/rivals/internal/orders"
)

// TestTypeScript has the generated client in TypeScript ask the arm, in JSON and in protobuf,
// and its types refuse a field that the proto file does not have.
func TestTypeScript(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: gets packages of npm")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../internal/orders/typescript")); err != nil {
		t.Fatal(err)
	}
	perform := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := perform("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"); err != nil {
		t.Skipf("SKIPPED: npm install: %v\n%s", err, out)
	}
	tsc := filepath.Join(dir, "node_modules", ".bin", "tsc")
	if out, err := perform(tsc); err != nil {
		t.Fatalf("the client in TypeScript: %v\n%s", err, out)
	}
	s := httptest.NewServer(newHandler())
	defer s.Close()
	out, err := perform("node", filepath.Join("out", "call.js"), s.URL)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 2 {
		t.Fatalf("calling: %v\n%s", err, out)
	}
	for _, line := range lines {
		got := new(orders.Order)
		if err := protojson.Unmarshal([]byte(line), got); err != nil || !proto.Equal(got, orders.Find(7)) {
			t.Errorf("got %s, %v; want the order", line, err)
		}
	}
	call, err := fs.ReadFile(os.DirFS(dir), "call.ts")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "call.ts"), []byte(strings.Replace(string(call), "{ id: 7 }", "{ number: 7 }", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := perform(tsc); err == nil || !strings.Contains(out, "'number' does not exist") {
		t.Errorf("a field that there is not: got %v\n%s", err, out)
	}
}
