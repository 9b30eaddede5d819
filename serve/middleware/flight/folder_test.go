package flight_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/middleware/flight"
)

// strange is a folder whose name is a pattern that it does not match itself.
func strange(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "[svc]")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range all {
		found = append(found, e.Name())
	}
	return found
}

// TestKeep keeps the newest snapshots, the one just written among them even if the
// clock was ahead before, and all files that are not the recorder's.
func TestKeep(t *testing.T) {
	const older, old, ahead = "slow-20000101T000000.000000.trace", "slow-20000102T000000.000000.trace", "slow-29990101T000000.000000.trace"
	others := []string{
		"mine.trace", "slow-.trace", "slow-0.trace", "slow-20000101T000000.trace", "slow-20001301T000000.000000.trace",
		"slow-20000101T000000,000000.trace", "slow-mine.trace",
	}
	for name, tc := range map[string]struct {
		keep       int
		kept, lost []string
	}{
		"two":   {2, []string{old}, []string{older}},
		"one":   {1, nil, []string{older, old}},
		"ahead": {2, []string{ahead}, []string{older, old}},
		"all":   {-1, []string{older, old}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := append(slices.Clone(others), tc.kept...)
			dir := strange(t, append(slices.Clone(want), tc.lost...)...)
			s := served(t, flight.Options{SlowerThan: bound, Dir: dir, Keep: tc.keep}, routed())
			get(t, s, "/users/slow")
			var got []string
			for range 500 {
				unsettled := func(name string) bool { return strings.HasSuffix(name, ".part") || slices.Contains(tc.lost, name) }
				if got = names(t, dir); len(got) == len(want)+1 && !slices.ContainsFunc(got, unsettled) {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			got = slices.DeleteFunc(got, func(name string) bool { return slices.Contains(want, name) })
			if len(got) != 1 || !strings.HasPrefix(got[0], "slow-20") || slices.Contains(tc.lost, got[0]) {
				t.Errorf("there is %q beside %q, want a new snapshot", got, want)
			}
			if left := len(names(t, dir)); left != len(want)+1 {
				t.Errorf("there are %q, want %q and a new one", names(t, dir), want)
			}
		})
	}
}

// TestSweep removes what killed processes left, and neither what another process
// may be writing nor what is not the recorder's.
func TestSweep(t *testing.T) {
	const left, growing, foreign, empty = ".slow-123.part", ".slow-456.part", ".slow-mine.part", ".slow-.part"
	dir := strange(t, left, growing, foreign, empty)
	if err := os.Mkdir(filepath.Join(dir, ".slow-789.part"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{left, foreign, empty, ".slow-789.part"} {
		before := time.Now().Add(-2 * flight.Abandoned)
		if err := os.Chtimes(filepath.Join(dir, name), before, before); err != nil {
			t.Fatal(err)
		}
	}
	r, err := flight.New(flight.Options{SlowerThan: bound, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	want := []string{empty, growing, ".slow-789.part", foreign}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
}
