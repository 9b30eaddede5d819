package record_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/lab/record"
)

// FuzzOpen: whatever a trials file holds, it is read or refused without a
// panic, and what is read is what a resumed run keeps.
func FuzzOpen(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{}\n{\"seq\":1}\n", "{\"seq\":0}\n{\"seq\":1}", "{\"seq\":0}\n{]\n{\"seq\":1}\n",
		"{\"seq\":0,\"metrics\":{\"a\":1e999}}\n", "\x00\x00\n", "{\"seq\":9223372036854775807}\n",
	} {
		f.Add([]byte(seed))
	}
	dir := filepath.Join(f.TempDir(), "r")
	w, err := record.Create(dir, manifest())
	if err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "trials.jsonl"), data, 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := record.Open(dir)
		if err != nil {
			return
		}
		w, again, err := record.Resume(dir)
		if err != nil {
			t.Fatalf("opens, but does not resume: %v", err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		after := open(t, dir)
		if len(again.Trials) != len(r.Trials) || len(after.Trials) != len(r.Trials) || len(after.Warnings) > 0 {
			t.Errorf("opened %d trials, resumed %d, then %d with warnings %v", len(r.Trials), len(again.Trials), len(after.Trials), after.Warnings)
		}
	})
}
