package ring_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/watch/ring"
	"github.com/tarehq/tare/internal/flock"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func put(t *testing.T, r *ring.Ring, e ring.Entry, size int) string {
	t.Helper()
	path, err := r.Put(e, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("x", size))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRing keeps the newest profiles within the bound, those of an earlier ring in the same
// folder among them, and reads all that it knows of them from their names.
func TestRing(t *testing.T) {
	dir := t.TempDir()
	names := []string{"shop", "../etc/x y", ".", strings.Repeat("ü", 90)}
	r, err := ring.Open(dir, 3*ring.Least)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		put(t, r, ring.Entry{Service: names[i%4], Build: "a_b/c", Begun: noon.Add(time.Duration(i) * time.Minute), Duration: 10 * time.Second}, ring.Least/2)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = ring.Open(dir, 3*ring.Least); err != nil {
		t.Fatal(err)
	}
	last := put(t, r, ring.Entry{Service: "shop", Build: "b", Begun: noon.Add(time.Hour), Duration: 2500 * time.Millisecond}, ring.Least)
	all, err := ring.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, e := range all {
		sum += e.Size
		if rel, err := filepath.Rel(dir, e.Path); err != nil || strings.HasPrefix(rel, "..") {
			t.Errorf("%s lies outside of %s", e.Path, dir)
		}
	}
	if len(all) != 5 || sum != 3*ring.Least {
		t.Fatalf("got %d profiles of %d bytes, want the last five, of 3 MiB: %v", len(all), sum, all)
	}
	for i, e := range all[:4] {
		want := ring.Entry{Service: names[i], Build: "a_b/c", Begun: noon.Add(time.Duration(i+4) * time.Minute), Duration: 10 * time.Second, Size: ring.Least / 2, Path: e.Path}
		if i == 3 {
			want.Service = e.Service // it is cut
			if !strings.HasPrefix(names[3], e.Service) || len(e.Service) < 40 {
				t.Errorf("got the service %q, want the beginning of %q", e.Service, names[3])
			}
		}
		if e != want {
			t.Errorf("got %+v, want %+v", e, want)
		}
	}
	if e := all[4]; e.Duration != 2500*time.Millisecond || e.Path != filepath.Join(dir, last) || e.Build != "b" {
		t.Errorf("got %+v, want the last", e)
	}
}

// TestRingInterrupted leaves nothing behind of a profile that could not be written, nor of
// who was killed while writing, and leaves what is not its own alone.
func TestRingInterrupted(t *testing.T) {
	dir := t.TempDir()
	r, err := ring.Open(dir, ring.Least)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no more")
	if _, err := r.Put(ring.Entry{Service: "shop", Begun: noon}, func(w io.Writer) error {
		fmt.Fprint(w, "half")
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of who wrote", err)
	}
	for name, content := range map[string]string{"shop/.tare-123": "half", "shop/notes.txt": "mine", "README": "mine", "shop/x_y_z.pb.gz": "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err = ring.Open(dir, ring.Least); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, "*", ".*"))
	if err != nil || len(files) != 2 || len(hidden) != 0 {
		t.Errorf("got %q and %q, %v, want what is not the ring's, and no more", files, hidden, err)
	}
	if all, err := ring.List(dir); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v, want no profiles", all, err)
	}
}

// TestRingOfSmall keeps small profiles within the bound as disks count them: in whole blocks.
func TestRingOfSmall(t *testing.T) {
	dir := t.TempDir()
	r, err := ring.Open(dir, ring.Least)
	if err != nil {
		t.Fatal(err)
	}
	const fit = ring.Least / 4096
	for i := range fit + 20 {
		put(t, r, ring.Entry{Service: "shop", Build: "b", Begun: noon.Add(time.Duration(i) * time.Second)}, 100)
	}
	for range 2 {
		all, err := ring.List(dir)
		if err != nil || len(all) != fit || !all[0].Begun.Equal(noon.Add(20*time.Second)) {
			t.Fatalf("got %d profiles, %v, want the last %d", len(all), err, fit)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err = ring.Open(dir, ring.Least); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRingStuck has a file that cannot be removed. The others give way in its place.
func TestRingStuck(t *testing.T) {
	dir := t.TempDir()
	r, err := ring.Open(dir, ring.Least)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(i int) ring.Entry {
		return ring.Entry{Service: "shop", Build: "b", Begun: noon.Add(time.Duration(i) * time.Minute)}
	}
	first := filepath.Join(dir, put(t, r, entry(0), ring.Least/2))
	put(t, r, entry(1), ring.Least/2)
	if err := errors.Join(os.Remove(first), os.MkdirAll(filepath.Join(first, "in the way"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, err := r.Put(entry(2+i), func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat("x", ring.Least/2))
			return err
		})
		if (err != nil) != (i == 0) {
			t.Errorf("profile %d: error %v, want one when the file is met, and once", 2+i, err)
		}
	}
	if all, err := ring.List(dir); err != nil || len(all) != 1 || !all[0].Begun.Equal(entry(4).Begun) {
		t.Errorf("got %v, %v, want the last profile alone", all, err)
	}
}

// TestRingFull has the oldest give way also where the disk is full before the ring is, and says so
// where that does not help.
func TestRingFull(t *testing.T) {
	dir := t.TempDir()
	r, err := ring.Open(dir, ring.Least)
	if err != nil {
		t.Fatal(err)
	}
	const fit = 4 // profiles on the disk
	add := func(i int) error {
		_, err := r.Put(ring.Entry{Service: fmt.Sprintf("shop%d", i%2), Build: "b", Begun: noon.Add(time.Duration(i) * time.Minute)}, func(w io.Writer) error {
			_, err := io.WriteString(w, "profile")
			if all, listed := ring.List(dir); listed != nil || len(all) >= fit {
				return errors.Join(err, listed, &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC})
			}
			return err
		})
		return err
	}
	const many = 3 * fit
	for i := range many {
		if err := add(i); err != nil {
			t.Fatalf("profile %d: %v", i, err)
		}
	}
	check := func(want int) {
		t.Helper()
		all, err := ring.List(dir)
		if err != nil || len(all) != want {
			t.Fatalf("got %v, %v, want %d profiles", all, err, want)
		}
		for i, e := range all {
			if begun := noon.Add(time.Duration(many-want+i) * time.Minute); !e.Begun.Equal(begun) || e.Size != int64(len("profile")) {
				t.Errorf("profile %d: got %+v, want the whole one of %s", i, e, begun)
			}
		}
	}
	check(fit)
	full := ring.Entry{Service: "shop", Build: "b", Begun: noon}
	if _, err := r.Put(full, func(io.Writer) error { return syscall.ENOSPC }); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a disk that stays full: got %v, want the reason", err)
	}
	broken := errors.New("no more")
	if err := add(many - 1); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Put(full, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of who wrote", err)
	}
	check(1)
}

// TestRingOfAnother refuses a folder that another ring writes to, and leaves it alone.
func TestRingOfAnother(t *testing.T) {
	dir := t.TempDir()
	r, err := ring.Open(dir, ring.Least)
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, "shop", ".tare-123")
	if err := errors.Join(os.Mkdir(filepath.Dir(half), 0o755), os.WriteFile(half, []byte("half"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Open(dir, ring.Least); !errors.Is(err, flock.ErrHeld) {
		t.Errorf("opening it twice: got %v, want %v", err, flock.ErrHeld)
	}
	if _, err := os.Stat(half); err != nil {
		t.Errorf("a file that the first may be writing: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Open(dir, ring.Least); err != nil {
		t.Errorf("after the first has closed: got %v", err)
	}
}

func TestRingTooSmall(t *testing.T) {
	if _, err := ring.Open(t.TempDir(), 1000); err == nil {
		t.Error("a ring of 1,000 bytes: no error")
	}
}

// A profile is kept as whoever has it writes it.
func ExampleRing_Put() {
	dir, err := os.MkdirTemp("", "ring")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	r, err := ring.Open(dir, 256<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	path, err := r.Put(ring.Entry{Service: "shop", Build: "abc", Begun: noon, Duration: 10 * time.Second}, func(w io.Writer) error {
		_, err := io.WriteString(w, "a profile")
		return err
	})
	fmt.Println(filepath.ToSlash(path), err)
	// Output: shop/20261126T120000.000Z_10s_abc.pb.gz <nil>
}
