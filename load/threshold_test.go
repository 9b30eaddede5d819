package load_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

func TestParseThresholdErrors(t *testing.T) {
	for give, want := range map[string]string{
		"":               "no comparison",
		"p99":            "no comparison",
		"q99<1ms":        `"q99" is not a measure`,
		"status_6xx>0":   `"status_6xx" is not a measure`,
		"status_4xx>5/s": "it must be a share (%)",
		"p<1ms":          `"p" is not a measure`,
		"p-1<1ms":        `"p-1" is not a measure`,
		"pInf<1ms":       `"pInf" is not a measure`,
		"p50%<1ms":       `"p50%" is not a measure`,
		"p0<1ms":         "outside",
		"p99.9999<1ms":   "outside",
		"99<1ms":         `"99" is not a measure`,
		"p99<50":         "p99: the bound is a plain number; it must be a time (ns, µs, ms, s)",
		"p99<-1ms":       `"-1ms" is negative`,
		"p99=<1ms":       "is not a measure",
		"p99<>1ms":       "does not begin with",
		"errors>2":       "the bound is a plain number; it must be a share (%)",
		"errors>NaN":     `"NaN" is not a quantity`,
		"rate<fast":      `"fast" is not a quantity`,
		"rate<1e3":       `"1e3" is not a quantity`,
		"rate<1000/min":  "is not a quantity",
		"rate<1ms":       "the bound is a time (ns, µs, ms, s); it must be a rate (/s)",
		"max<":           `"" is not a quantity`,
		"latency p99<1s": "is not a measure",
	} {
		if _, err := load.ParseThreshold(give); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseThreshold(%q): got error %v, want one with %q", give, err, want)
		}
	}
}

// sampleResult has 98 answers of 1 ms to 98 ms, one 500 among them, one
// time-out and one dropped, over two seconds, times scale.
func sampleResult(scale uint64) *load.Result {
	r := &load.Result{Elapsed: 2 * time.Second, Response: hist.New()}
	for i := range int64(98) {
		r.Response.RecordN((i+1)*1e6, scale)
	}
	r.Counts.Scheduled = 100 * scale
	r.Counts.Status[2], r.Counts.Status[5] = 97*scale, scale
	r.Counts.Timeout, r.Counts.Dropped = scale, scale
	return r
}

// An upper bound of response times is held by what is fast, one of errors or of the rate is not.
func TestBoundsTime(t *testing.T) {
	for give, want := range map[string]bool{"p99<1ms": true, "max<=1s": true, "mean<1ms": true, "p99>1ms": false, "errors<1%": false, "rate<9": false, "status_4xx<1": false} {
		th, err := load.ParseThreshold(give)
		if err != nil || th.BoundsTime() != want {
			t.Errorf("%s: got %t, %v; want %t", give, th.BoundsTime(), err, want)
		}
	}
}

func TestClasses(t *testing.T) {
	for want, give := range map[string]load.Classes{"no answer": {}, "17,317 2xx, 20 5xx": {2: 17_317, 5: 20}} {
		if got := give.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestThresholdHolds(t *testing.T) {
	tests := []struct {
		give  string
		holds bool
		value string
	}{
		{"p50<51ms", true, "50.0 ms"},
		{"p50 > 49 ms", true, "50.0 ms"},
		{"p50>51ms", false, "50.0 ms"},
		{"p90<=91ms", true, "90.0 ms"},
		// 2 % never came: p99 is among them, whatever the bound.
		{"p99<1h", false, "no answer"},
		{"p99>1h", true, "no answer"},
		{"p98<99ms", true, "98.0 ms"}, // of all 100, the dropped one too
		{"p98.5<1h", false, "no answer"},
		{"max<1h", false, "no answer"},
		{"mean<1h", false, "no answer"},
		{"errors>=2.9 %", true, "3.0 %"},
		{"errors<0.031", true, "3.0 %"},
		{"errors>3.1%", false, "3.0 %"},
		{"status_5xx>0", true, "1.0 %"},
		{"status_2xx>=97%", true, "97.0 %"},
		{"status_4xx>0", false, "0.0 %"},
		{"rate>480/s", true, "490/s"},
		{"rate<0.5k", true, "490/s"},
		{"rate>0.48k", true, "490/s"},
		{"rate<0.0005M", true, "490/s"},
		{"rate>0.00048M", true, "490/s"},
		{"rate>1M/s", false, "490/s"},
	}
	for _, tt := range tests {
		th, err := load.ParseThreshold(tt.give)
		if err != nil {
			t.Fatal(err)
		}
		r := sampleResult(10)
		holds, value, err := th.Holds(r)
		if holds != tt.holds || value != tt.value || err != nil {
			t.Errorf("%q on the sample: got %v at %s, %v; want %v at %s", tt.give, holds, value, err, tt.holds, tt.value)
		}
	}
}

// TestThresholdsOfAllAnswered: where every request was answered, maximum and mean are
// those of the answers.
func TestThresholdsOfAllAnswered(t *testing.T) {
	r := &load.Result{Elapsed: time.Second, Response: hist.New()}
	r.Response.RecordN(1e6, 9)
	r.Response.Record(101e6)
	r.Counts.Scheduled, r.Counts.Status[2] = 10, 10
	for give, want := range map[string]struct {
		holds bool
		value string
	}{
		"max<100ms": {false, "101 ms"}, "max<102ms": {true, "101 ms"}, "max>102ms": {false, "101 ms"},
		"mean<10ms": {false, "11.0 ms"}, "mean<12ms": {true, "11.0 ms"}, "mean>12ms": {false, "11.0 ms"},
	} {
		th, err := load.ParseThreshold(give)
		if err != nil {
			t.Fatal(err)
		}
		if holds, value, err := th.Holds(r); holds != want.holds || value != want.value || err != nil {
			t.Errorf("%q: got %v at %s, %v; want %v at %s", give, holds, value, err, want.holds, want.value)
		}
	}
}

func TestThresholdInconclusive(t *testing.T) {
	for give, need := range map[string]uint64{"p99<1s": 1000, "p99.9<1s": 10_000, "p99.99>1s": 100_000, "p50<1s": 20, "max<1s": 1, "errors>1%": 1} {
		th, err := load.ParseThreshold(give)
		if err != nil {
			t.Fatal(err)
		}
		if got := th.Requests(); got != need {
			t.Errorf("%q: got %d requests needed, want %d", give, got, need)
		}
		r := &load.Result{Response: hist.New(), Elapsed: time.Second}
		r.Counts.Scheduled, r.Counts.Status[2] = need-1, need-1
		if _, _, err := th.Holds(r); !errors.Is(err, load.ErrInconclusive) {
			t.Errorf("%q on %d requests: got error %v, want ErrInconclusive", give, need-1, err)
		}
	}
}
