package parcel_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/kube/parcel"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	given := parcel.Files{"mine.yaml": []byte("name: mine\n"), "data/a.txt": []byte("a")}
	if err := given.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"runs/r/report.html": "<p>", "data/a.txt": "b", "large": strings.Repeat("x", 100)} {
		if err := (parcel.Files{name: []byte(text)}).Unpack(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Log("no links here:", err)
	}
	got, left, err := parcel.Pack(dir, given, 50)
	want := parcel.Files{"runs/r/report.html": []byte("<p>"), "data/a.txt": []byte("b")}
	if err != nil || !reflect.DeepEqual(got, want) || !slices.Equal(left, []string{"large"}) {
		t.Errorf("got %q, %q, %v; want %q and the large one left out", got, left, err, want)
	}
}

func TestUnpackStaysInside(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "inner")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	names := []string{"../out", "/out", "a/../../out"}
	if os.Symlink(outer, filepath.Join(dir, "up")) == nil {
		names = append(names, "up/out")
	}
	for _, name := range names {
		if err := (parcel.Files{name: []byte("x")}).Unpack(dir); err == nil {
			t.Errorf("%s was written, want an error", name)
		}
		if _, err := os.Stat(filepath.Join(outer, "out")); err == nil {
			t.Fatalf("%s is outside of the folder", name)
		}
	}
}

func TestOutcome(t *testing.T) {
	want := &parcel.Outcome{Status: 5, Output: []byte("{\"a\": \"\xff\"}\n"), Errors: []byte("late\n"), Files: parcel.Files{"a": {0, 1}}, LeftOut: []string{"b"}}
	var b bytes.Buffer
	if err := want.Write(&b); err != nil {
		t.Fatal(err)
	}
	if got, err := parcel.Read(bytes.NewReader(b.Bytes())); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := parcel.Read(bytes.NewReader(b.Bytes()[:b.Len()/2])); err == nil {
		t.Error("half of an outcome was read without an error")
	}
	want.Files = parcel.Files{}
	for i := range 50_001 {
		want.Files[strconv.Itoa(i)] = nil
	}
	if err := want.Write(&b); err != nil {
		t.Fatal(err)
	}
	b.ReadString('\n') // the first
	if _, err := parcel.Read(&b); err == nil || !strings.Contains(err.Error(), "more than 50000 files") {
		t.Errorf("got %v, want that there are too many files", err)
	}
}
