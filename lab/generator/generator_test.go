package generator_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/generator"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// TestCompare holds figures against a log of a hundred requests a second, of which each
// took 1 ms: small ones are off by a share of 5 ms. Where some are missing in the
// log, nobody knows which were due when; where many are, that was not the rate.
func TestCompare(t *testing.T) {
	for _, seen := range []int{97, 98, 99, 100, 101, 102, 103} {
		dir, log := t.TempDir(), "arrival_unix_ns,departure_unix_ns\n"
		for i := range seen {
			log += fmt.Sprintf("%d,%d\n", i*1e7, i*1e7+1e6)
		}
		if err := os.WriteFile(filepath.Join(dir, "requests.csv"), []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		tr := record.Trial{Requests: 100, Metrics: map[string]float64{"response_p50": 1.5e6}}
		if err := generator.Compare(dir, 100, &tr); err != nil {
			t.Fatal(err)
		}
		missing := math.Abs(float64(seen - 100))
		if got := tr.Metrics["count_error"]; got != missing {
			t.Errorf("%d seen: counts are off by %v, want %v", seen, got, missing)
		}
		off, ok := tr.Metrics["p50_error"]
		if ok != (missing <= 1) || ok && math.Abs(off-0.1) > 0.001 {
			t.Errorf("%d seen: p50 is off by %v (%t), want 0.1 if no more than one is missing", seen, off, ok)
		}
		if counts := len(tr.Invalid) == 0; counts != (missing <= 2) || counts != ok && len(tr.Warnings) == 0 {
			t.Errorf("%d seen: invalid for %q, warnings %q; want the one where more than 2 %% are missing, else the other where any is", seen, tr.Invalid, tr.Warnings)
		}
	}
}

func TestFigures(t *testing.T) {
	r := study.Reports{Requests: `(\S+) requests`, P50: `50%\s+(.+)`, P99: `99%\s+(.+)`, Max: `max (\S+)`, Unit: "ms"}
	n, times, missing, err := generator.Figures("warm-up: 3 requests\n120 requests\n 50%  1.25us\n 99%  0.5 secs\n", r)
	if err != nil || n != 120 || times["response_p50"] != 1250 || times["response_p99"] != 5e8 || fmt.Sprint(missing) != "[response_max]" {
		t.Errorf("got %d, %v, missing %v, %v", n, times, missing, err)
	}
	for text, want := range map[string]float64{"3": 3e6, "7ns": 7, "7µs": 7e3, "2.5 ms": 2.5e6, "1.5m": 90e9, "0.25s": 25e7, "1 second": 1e9} {
		_, times, _, err := generator.Figures("1 requests 50% "+text, r)
		if got := times["response_p50"]; err != nil || got != want {
			t.Errorf("%q: got %v ns, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"none":                  "matches nothing",
		"x requests":            `"x" is not a number of requests`,
		"1 requests 50%  fast":  `"fast" is not a time`,
		"1 requests 50%  1 day": "no known unit",
	} {
		if _, _, _, err := generator.Figures(text, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error that says %s", text, err, want)
		}
	}
}
