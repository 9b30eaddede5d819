package http1_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/serve/internal/http1"
)

// strict is the reading that servers have unless they ask for another.
var strict http1.Lenient

// An attack is one file of testdata/attacks: the bytes of one connection. Its
// name begins with the status of the refusal, or with 200 if the requests must
// be read.
type attack struct {
	name   string
	status int
	in     []byte
}

func attacks(t testing.TB) []attack {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "attacks", "*.http"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("finding attacks: %d files, %v", len(paths), err)
	}
	all := make([]attack, len(paths))
	for i, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".http")
		status, err := strconv.Atoi(name[:3])
		if err != nil {
			t.Fatalf("%s: the name begins with no status", path)
		}
		in, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = attack{name, status, in}
	}
	return all
}

func TestAttacks(t *testing.T) {
	for _, a := range attacks(t) {
		t.Run(a.name, func(t *testing.T) { testAttack(t, a) })
	}
}

func testAttack(t *testing.T, a attack) {
	whole := drive(a.in, len(a.in), strict)
	got := whole.status
	if whole.verdict == accept {
		got = 200
	}
	if got != a.status {
		t.Errorf("%s, status %d (%s), want %d, of\n\t%s", whole.verdict, got, whole.reason, a.status, quote(a.in))
	}
	for step := 1; step < 9; step++ {
		parts := drive(a.in, step, strict)
		if parts.verdict != whole.verdict || parts.reason != whole.reason || !slices.EqualFunc(parts.requests, whole.requests, same) {
			t.Errorf("%d bytes at a time %+v, whole %+v", step, parts, whole)
		}
	}
	for _, r := range whole.requests {
		if a.status != 200 && strings.Contains(r.target, "smuggled") {
			t.Errorf("the smuggled request was read: %v", r)
		}
	}
}
