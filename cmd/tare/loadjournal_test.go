package main

import (
	"os"
	"strings"
	"testing"
)

// The journal beside --output replaces no file that is read or another result.
func TestImpliedJournalIsChecked(t *testing.T) {
	t.Chdir(t.TempDir())
	const people = "{\"name\":\"ada\"}\n"
	if err := os.WriteFile("people.journal.jsonl", []byte(people), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("none.journal.jsonl", 0o755); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--output's journal people.journal.jsonl: that file is read":      {"--feed", "people.journal.jsonl", "-b", "{{.name}}", "-o", "people.json"},
		"--csv and --output's journal are the same file: q.journal.jsonl": {"--csv", "q.journal.jsonl", "-o", "q.json"},
		"--output's journal none.journal.jsonl: that is a folder":         {"-o", "none.json"},
		"--output and --journal are the same file: ./q.json":              {"-o", "q.json", "--journal", "./q.json"},
	} {
		status, _, errs := tare(t, append([]string{"load", "-q", "-n", "1", deadURL(t)}, args...)...)
		if status == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: got status %d and %q, want %q", args, status, errs, want)
		}
	}
	if got, err := os.ReadFile("people.journal.jsonl"); err != nil || string(got) != people {
		t.Errorf("the feeder's file holds %q (%v), want what it held", got, err)
	}
}
