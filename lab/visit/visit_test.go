package visit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/visit"
)

// TestResponses works out response times of a log in which the first request
// came 3 ms late for connecting, and one stood in a queue.
func TestResponses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.csv")
	log := "seq,arrival_unix_ns,departure_unix_ns\n" +
		",50,60\n" + // before the generator started
		",1003000000,1004000000\n" + // due at 1.000 s
		",1020000000,1021000000\n" + // due at 1.020
		",1012000000,1025000000\n" // due at 1.010, 2 ms late
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	seen, err := visit.Read(path, time.Unix(0, 1000))
	if err != nil {
		t.Fatal(err)
	}
	h := visit.Responses(seen, 100)
	for q, want := range map[float64]time.Duration{0: time.Millisecond, .5: 4 * time.Millisecond, 1: 15 * time.Millisecond} {
		if got := time.Duration(h.Quantile(q)); got < want-want/500 || got > want+want/500 || h.Count() != 3 {
			t.Errorf("quantile %v of %d: got %v, want %v of 3", q, h.Count(), got, want)
		}
	}
	for text, want := range map[string]string{
		"a,b\n1,2\n": "lacks arrival_unix_ns", "": "lacks arrival_unix_ns",
		"arrival_unix_ns,departure_unix_ns\n1\n":   "line 2 has 1 columns, not 2",
		"arrival_unix_ns,departure_unix_ns\n1,x\n": "line 2",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := visit.Read(path, time.Time{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error that says %s", text, err, want)
		}
	}
}
