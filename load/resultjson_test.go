package load_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

var update = flag.Bool("update", false, "write the golden files")

func TestResultJSON(t *testing.T) {
	r := sampleResult(100)
	r.Started = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)
	r.Engine, r.Threads, r.Ended = load.Goroutines, 2, "interrupted"
	r.Connect = hist.New()
	r.Connect.Record(1000)
	r.Handshake = hist.New() // empty
	r.BytesIn, r.BytesOut, r.Opened, r.Reused, r.Full, r.Resumed = 1, 2, 3, 4, 5, 6
	r.MeanFlight, r.PeakFlight, r.CPU, r.Spun, r.MaxRSS, r.Bound = 1.5, 7, time.Millisecond, 1000, 8<<20, true
	r.Series = []load.Slice{{At: time.Second, Answered: 1, Failed: 2, Dropped: 3, BytesIn: 4, P50: 5, P99: 6, Max: 7}}
	r.Waited, r.Warnings = true, []error{errors.New("late")}
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", "result.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant %s:\n%s", got, golden, want)
	}
}

// The zero result, of a run that never began, is an object too.
func TestResultJSONEmpty(t *testing.T) {
	got, err := json.Marshal(&load.Result{})
	if err != nil || strings.Contains(string(got), "null") || strings.Contains(string(got), "p50_ns") {
		t.Errorf("got %s, %v; want no null and no quantiles", got, err)
	}
}

func TestWriteSeries(t *testing.T) {
	r := &load.Result{Series: []load.Slice{{At: time.Second, Answered: 1, Failed: 2, Dropped: 3, BytesIn: 4, P50: 5, P99: 6, Max: 7}}}
	var b strings.Builder
	err := r.WriteSeries(&b)
	want := "at_ns,answered,failed,dropped,bytes_in,p50_ns,p99_ns,max_ns\n1000000000,1,2,3,4,5,6,7\n"
	if b.String() != want || err != nil {
		t.Errorf("got %q, %v; want %q", b.String(), err, want)
	}
}

func TestSearchResultJSON(t *testing.T) {
	got, err := json.Marshal(&load.SearchResult{Threshold: "rate>4", Rate: 5, Confirmed: true, Warnings: []error{errors.New("w")},
		Probes: []load.Probe{{Rate: 5, Held: true, Value: "900µs"}}})
	want := `{"schema":1,"threshold":"rate\u003e4","rate":5,"confirmed":true,"ended":"","probes":[{"rate":5,"held":true,"confirm":false,"value":"900µs","reason":"","bound":false,"result":null}],"warnings":["w"]}`
	if string(got) != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
