package tare_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReleaseFiles makes what a release holds beside its programs, and wants every file that
// the configuration of goreleaser names.
func TestReleaseFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a release's files: builds the command")
	}
	for _, program := range []string{"bash", "gzip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: a release's files: %s is not installed", program)
		}
	}
	config, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(t.TempDir(), "made")
	if out, err := exec.CommandContext(t.Context(), "bash", ".ci/release-files", made).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := regexp.MustCompile(`(?m)src: "?([^"\n]*)"?$`).FindAllStringSubmatch(string(config), -1)
	for _, m := range files {
		path := m[1]
		if rest, ok := strings.CutPrefix(path, ".release/"); ok {
			path = filepath.Join(made, rest)
		}
		if found, err := filepath.Glob(path); err != nil || len(found) == 0 {
			t.Errorf(".goreleaser.yaml names %s, which is not there: %v", m[1], err)
		}
	}
	if len(files) < 10 {
		t.Errorf("found %d files in .goreleaser.yaml, want 10 or more: are they still found?", len(files))
	}
	pages, err := filepath.Glob(filepath.Join(made, "man", "*.1.gz"))
	if err != nil || !slices.Contains(pages, filepath.Join(made, "man", "tare-load.1.gz")) || len(pages) < 25 {
		t.Errorf("got the manual pages %q, %v, want tare and its verbs", pages, err)
	}
}

// TestServeVersions has the modules that build on serve require one version of it, a
// release's: those who get such a module get that serve, since only here is it replaced.
func TestServeVersions(t *testing.T) {
	versions := map[string][]string{}
	for _, dir := range moduleDirs {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module+"/serve") + ` (v\S+)`).FindSubmatch(mod)
		if strings.HasPrefix(dir, "serve/") && m == nil {
			t.Errorf("%s/go.mod does not require serve", dir)
		} else if strings.HasPrefix(dir, "serve/") {
			versions[string(m[1])] = append(versions[string(m[1])], dir)
		}
	}
	for version, dirs := range versions {
		if !regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(version) || len(versions) != 1 {
			t.Errorf("%q require serve %s: want one release's version in all: go mod edit -require", dirs, version)
		}
	}
}

// TestTags performs the lines by which CONTRIBUTING.md tags a release, with echo in git's
// place: every module that others get has a tag, serve's is pushed before those that build
// on it, and the root's last.
func TestTags(t *testing.T) {
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^ {7}((?:dirs=|for dir in ).*)$`).FindAllStringSubmatch(string(page), -1)
	if len(lines) != 3 {
		t.Fatalf("CONTRIBUTING.md has %d lines that tag a release, want 3", len(lines))
	}
	script := lines[0][1] + "\n" + lines[1][1] + "\n" + lines[2][1]
	script = strings.NewReplacer("git tag", "echo tag", "git push origin", "echo push", "vX.Y.Z", "v0.1.0").Replace(script)
	for _, program := range []string{"bash", "git", "xargs"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: a release's tags: %s is not installed", program)
		}
	}
	if err := exec.Command("git", "rev-parse", "--git-dir").Run(); err != nil {
		t.Skip("SKIPPED: a release's tags: this is no git repository")
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got, want, pushed []string
	for line := range strings.Lines(string(out)) {
		if what, tag, _ := strings.Cut(strings.TrimSpace(line), " "); what == "tag" {
			got = append(got, tag)
		} else {
			pushed = append(pushed, tag)
		}
	}
	for _, dir := range moduleDirs {
		if !strings.HasPrefix(dir, "examples/") { // which nobody requires
			want = append(want, strings.TrimPrefix(dir+"/v0.1.0", "./"))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("tagged are %q, want %q", got, want)
	}
	if pushed[0] != "serve/v0.1.0" || pushed[len(pushed)-1] != "v0.1.0" || len(pushed) != len(got)+1 { // serve's twice
		t.Errorf("pushed are %q, want serve's first, the root's last, and all", pushed)
	}
}
