package variant_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tarehq/tare/lab/variant"
)

func TestBases(t *testing.T) {
	top := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir = top
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	old, recent := filepath.Join(top, "old"), filepath.Join(top, "recent")
	for _, dir := range []string{old, recent} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(dir string, want ...string) {
		t.Helper()
		if got := variant.Bases(t.Context(), dir); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", filepath.Base(dir), got, want)
		}
	}
	check(old)
	run("init", "-q", "-b", "trunk")
	run("add", "old")
	run("commit", "-qm", "one")
	check(old) // no branch that is known as the default
	run("tag", "v1.0.0")
	check(old, "v1.0.0")
	run("branch", "master")
	run("add", "recent")
	run("commit", "-qm", "two")
	run("tag", "v2.0.0")
	check(old, "master", "v2.0.0")
	check(recent, "v2.0.0")
	run("update-ref", "refs/remotes/origin/trunk", "HEAD")
	run("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
	check(recent, "trunk", "v2.0.0")
}
