package upload_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/web/upload"
)

var limits = upload.Limits{Bytes: 1000, Files: 10}

// entry is a file of an archive; kind 0 is a regular one.
type entry struct {
	name, text string
	kind       byte
}

func zipped(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(0o644)
		if e.kind == tar.TypeSymlink {
			h.SetMode(0o777 | fs.ModeSymlink)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(e.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarred(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Size: int64(len(e.text)), Mode: 0o644}
		if e.kind != 0 {
			h.Typeflag, h.Linkname, h.Size = e.kind, e.text, 0
		}
		err := w.WriteHeader(h)
		if err == nil && e.kind == 0 {
			_, err = w.Write([]byte(e.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpack unpacks into a new folder, and returns the files that are there and around it.
func unpack(t testing.TB, data []byte) ([]string, error) {
	t.Helper()
	outer := t.TempDir()
	dir := filepath.Join(outer, "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := upload.Unpack(bytes.NewReader(data), int64(len(data)), dir, limits)
	var found []string
	if err := filepath.WalkDir(outer, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(rel))
			if !d.Type().IsRegular() {
				t.Errorf("%s is no regular file", rel)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found, err
}

func TestUnpack(t *testing.T) {
	run := []entry{{name: "manifest.json", text: "{}"}, {name: "trials.jsonl", text: "1\n"}, {name: "hist/000001.hlog", text: "h"},
		{name: "profiles/000000-pprof-cpu.pb.gz", text: "p"}, {name: "report.html", text: "<script>"}, {name: ".manifest.json-123", text: "half"}}
	var nested []entry
	for _, e := range run {
		nested = append(nested, entry{name: "20260102-150405-nesting/" + e.name, text: e.text})
	}
	want := []string{"hist/000001.hlog", "manifest.json", "profiles/000000-pprof-cpu.pb.gz", "trials.jsonl"}
	for name, data := range map[string][]byte{
		"zip": zipped(t, run...), "zip of a folder": zipped(t, nested...), "tar": tarred(t, run...), "tar of a folder": tarred(t, nested...),
		"tar.gz": gzipped(t, tarred(t, run...)), "tar with ./": tarred(t, entry{name: "./", kind: tar.TypeDir}, entry{name: "./manifest.json", text: "{}"}),
	} {
		got, err := unpack(t, data)
		want := want
		if name == "tar with ./" {
			want = want[1:2]
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// A run has what its page says, and all of it can be sent.
func TestRunFolder(t *testing.T) {
	page, err := os.ReadFile("../../docs/run-folder.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tree, _ := strings.Cut(string(page), "```\n")
	tree, _, _ = strings.Cut(tree, "```")
	var run []entry
	for line := range strings.Lines(tree) {
		if words := strings.Fields(line); strings.HasPrefix(line, "  ") {
			run = append(run, entry{name: strings.Replace(words[0], "…", "000017-pprof-cpu.pb.gz", 1), text: "x"})
		}
	}
	if len(run) < 7 {
		t.Fatalf("the page names %v, want seven files or more", run)
	}
	got, err := unpack(t, tarred(t, run...))
	if want := len(run) - 1; err != nil || len(got) != want { // report.html is written anew
		t.Errorf("of %v got %q, %v, want %d files", run, got, err, want)
	}
}

func TestRefused(t *testing.T) {
	manifest := entry{name: "manifest.json", text: "{}"}
	many := []entry{manifest}
	for _, c := range "abcdefghij" {
		many = append(many, entry{name: "hist/" + string(c), text: "x"})
	}
	for name, c := range map[string]struct {
		entries []entry
		want    string
	}{
		"nothing":            {nil, "no manifest.json"},
		"above":              {[]entry{manifest, {name: "../evil", text: "x"}}, "does not belong to a run"},
		"above, below":       {[]entry{{name: "hist/../../evil", text: "x"}}, "does not belong to a run"},
		"above, hidden":      {[]entry{{name: "../.evil", text: "x"}}, "does not belong to a run"},
		"absolute":           {[]entry{{name: "/etc/evil", text: "x"}}, "does not belong to a run"},
		"backslash":          {[]entry{{name: `hist/a\..\evil`, text: "x"}}, "does not belong to a run"},
		"another name":       {[]entry{manifest, {name: "run.sh", text: "x"}}, "does not belong to a run"},
		"deeper":             {[]entry{manifest, {name: "hist/a/b", text: "x"}}, "does not belong to a run"},
		"two runs":           {[]entry{{name: "a/manifest.json", text: "{}"}, {name: "b/manifest.json", text: "{}"}}, "does not belong to a run"},
		"symbolic link":      {[]entry{{name: "manifest.json", text: "/etc/passwd", kind: tar.TypeSymlink}}, "no file and no folder"},
		"twice":              {[]entry{manifest, manifest}, "is there twice"},
		"too large":          {[]entry{manifest, {name: "trials.jsonl", text: strings.Repeat("x", 1000)}}, "too large"},
		"too many":           {many, "too many files"},
		"only report.html":   {[]entry{{name: "report.html", text: "x"}}, "no manifest.json"},
		"a folder's own dot": {[]entry{{name: "hist/..", text: "x"}}, "does not belong to a run"},
	} {
		for form, data := range map[string][]byte{"zip": zipped(t, c.entries...), "tar": tarred(t, c.entries...)} {
			got, err := unpack(t, data)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s as %s: error %v, want %q", name, form, err, c.want)
			}
			if slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "evil") || strings.HasPrefix(f, "..") }) {
				t.Errorf("%s as %s: wrote %q", name, form, got)
			}
		}
	}
	for name, data := range map[string][]byte{
		"hard link": tarred(t, entry{name: "manifest.json", text: "trials.jsonl", kind: tar.TypeLink}), "device": tarred(t, entry{name: "trials.jsonl", kind: tar.TypeChar}),
		"empty": nil, "text": []byte("hello"), "half a zip": zipped(t, manifest)[:40], "half a tar.gz": gzipped(t, tarred(t, manifest))[:30],
	} {
		if _, err := unpack(t, data); err == nil {
			t.Errorf("%s: no error, want one", name)
		}
	}
}

// A little archive of much that is left out ends once more was read than could be kept.
func TestBomb(t *testing.T) {
	const most = 4 << 20 // more than limits allow, headers included
	zeros := strings.Repeat("\x00", most)
	for _, left := range []string{".hidden", "report.html"} {
		bomb := gzipped(t, tarred(t, entry{name: "manifest.json", text: "{}"}, entry{name: left, text: zeros}))
		if len(bomb) > most/100 {
			t.Fatalf("the archive has %d bytes, and is no bomb", len(bomb))
		}
		if got, err := unpack(t, bomb); err == nil || !strings.Contains(err.Error(), "too large unpacked") {
			t.Errorf("%s: got %q, %v, want it refused", left, got, err)
		}
		small := gzipped(t, tarred(t, entry{name: "manifest.json", text: "{}"}, entry{name: left, text: zeros[:100_000]}))
		if got, err := unpack(t, small); err != nil || len(got) != 1 {
			t.Errorf("%s of 100 kB: got %q, %v, want the manifest alone", left, got, err)
		}
	}
}

// FuzzUnpack writes nothing but a run's files, within the limits, whatever the archive.
func FuzzUnpack(f *testing.F) {
	run := []entry{{name: "r/manifest.json", text: "{}"}, {name: "r/hist/1", text: "h"}, {name: "r/../../x", text: "h"}}
	f.Add(zipped(f, run...))
	f.Add(tarred(f, run...))
	f.Add(gzipped(f, tarred(f, run[:2]...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _ := unpack(t, data)
		if len(got) > limits.Files {
			t.Errorf("%d files, want at most %d", len(got), limits.Files)
		}
		for _, name := range got {
			ok := slices.Contains([]string{"manifest.json", "trials.jsonl", "captures.jsonl", "agents.jsonl"}, name) || strings.HasPrefix(name, "hist/") || strings.HasPrefix(name, "profiles/")
			if !ok || strings.Contains(name, "..") && strings.HasPrefix(name, "..") {
				t.Errorf("wrote %q", name)
			}
		}
	})
}
