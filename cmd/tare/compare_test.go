package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/studies"
)

// A run is not compared with itself or its copy; with one that another machine began in
// the same second it is.
func TestCompareTellsRunsApart(t *testing.T) {
	s, err := studies.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 1, 2, 2, 0, 0, 123, time.UTC)
	home := t.TempDir()
	for name, started := range map[string]time.Time{"a": begun, "copy": begun, "elsewhere": begun.Add(time.Millisecond)} {
		w, err := record.Create(filepath.Join(home, name), record.Manifest{ID: "20260102-020000-null", Study: *s, Started: started})
		if err := errors.Join(err, w.Finish("cap")); err != nil {
			t.Fatal(err)
		}
	}
	const same = "both are the run 20260102-020000-null"
	for other, want := range map[string]bool{"a": true, "copy": true, "elsewhere": false} {
		status, _, said := tare(t, "compare", "--dir", home, "a", other)
		if strings.Contains(said, same) != want || status == 0 {
			t.Errorf("a with %s: got exit status %d and %q, want that they are one run: %t", other, status, said, want)
		}
	}
}
