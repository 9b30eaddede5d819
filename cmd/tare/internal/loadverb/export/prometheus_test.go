package export_test

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/loadverb/export"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// state is one of a load that ran for so long.
func state(elapsed time.Duration) load.Snapshot {
	h := hist.New()
	h.RecordN(int64(2*time.Millisecond), 99)
	return load.Snapshot{Elapsed: elapsed, Flight: 3, Response: h,
		Counts: load.Counts{Scheduled: 101, Status: load.Classes{2: 90, 4: 9}, Refused: 2}}
}

// A scrape has the latest state, each line in the text format of Prometheus.
func TestScrape(t *testing.T) {
	var said bytes.Buffer
	e, err := export.Flags{Prometheus: "127.0.0.1:0"}.Open(t.Context(), &cli.Terminal{Err: &said})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, url, _ := strings.Cut(strings.TrimSpace(said.String()), "metrics at ")
	get := func() string {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
			t.Errorf("got content type %q", got)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := get(); got != "" {
		t.Errorf("before the first state: got %q, want nothing", got)
	}
	e.Note(load.Snapshot{Response: hist.New()})
	e.Note(state(1500 * time.Millisecond))
	got := get()
	for _, want := range []string{
		"tare_load_requests_total 101\n", `tare_load_responses_total{class="2xx"} 90` + "\n", `tare_load_responses_total{class="4xx"} 9` + "\n",
		`tare_load_failures_total{cause="refused"} 2` + "\n", "tare_load_in_flight 3\n", "tare_load_elapsed_seconds 1.5\n",
		`tare_load_response_seconds{quantile="0.5"} 0.002`, "tare_load_response_seconds_count 99\n", "# TYPE tare_load_response_seconds summary\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%swant %q in it", got, want)
		}
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) tare_load_[a-z_]+ .+|tare_load_[a-z_]+(\{[a-z]+="[^"]+"\})? -?[0-9.e+-]+)$`)
	for text := range strings.Lines(got) {
		if !line.MatchString(strings.TrimSuffix(text, "\n")) {
			t.Errorf("got the line %q, which is not in the text format", text)
		}
	}
}
