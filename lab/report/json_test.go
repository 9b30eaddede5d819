package report_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/report"
	"github.com/tarehq/tare/lab/study"
)

func TestJSON(t *testing.T) {
	r := synthetic(1)
	var b strings.Builder
	if err := report.JSON(&b, analyse(t, r)); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(b.String()), &doc); err != nil {
		t.Fatal(err)
	}
	// The golden file holds the whole shape, with three metrics of one
	// workload, to a precision that all architectures agree on.
	w := doc["workloads"].([]any)[0].(map[string]any)
	w["metrics"] = slices.DeleteFunc(w["metrics"].([]any), func(m any) bool {
		return !slices.Contains([]string{"cpu_per_request", "response_p9999", "loop_allocs"}, m.(map[string]any)["name"].(string))
	})
	doc["workloads"] = []any{w}
	text, err := json.MarshalIndent(rounded(doc), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "nesting.json", string(text)+"\n")
}

// rounded is v with all numbers to four significant digits.
func rounded(v any) any {
	switch v := v.(type) {
	case float64:
		r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
		return r
	case []any:
		for i := range v {
			v[i] = rounded(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rounded(v[k])
		}
	}
	return v
}

// What a claim gives as a ratio alone stands beside what was measured, in text and on
// the page, and is in JSON also where it could not be judged.
func TestPublishedRatio(t *testing.T) {
	r := synthetic(1)
	judged := study.Check{Kind: study.Effect, Says: "a fifth less", Metric: "cpu_per_request", Workload: "half", Arm: "flattened",
		PublishedRatio: ptr(0.8), Direction: "less"}
	leftOut := judged
	leftOut.Arm = "nginx"
	r.Manifest.Study.Claims = []study.Claim{{ID: "P7.ratio", Checks: []study.Check{judged, leftOut}}}
	a := analyse(t, r)
	var text, page, object strings.Builder
	if err := errors.Join(report.Text(&text, a, doc.TextOptions{}), report.HTML(&page, r, a), report.JSON(&object, a)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ form, got, want string }{
		{"text", text.String(), "  -20.0 %  "},
		{"page", page.String(), "data-head=\"published\">-20.0\u00a0%"},
		{"JSON", object.String(), `"published_ratio": 0.8`},
	} {
		if n := strings.Count(tt.got, tt.want); n != 2 {
			t.Errorf("%s: %q is there %d times, want once a check", tt.form, tt.want, n)
		}
	}
}

// TestJSONOfPartialRuns: an unbounded interval has no ends, and nothing that
// JSON cannot hold is written.
func TestJSONOfPartialRuns(t *testing.T) {
	whole := synthetic(1)
	for _, n := range []int{0, 1, 7, 13, 40} {
		r := *whole
		r.Trials = whole.Trials[:n]
		var b strings.Builder
		if err := report.JSON(&b, analyse(t, &r)); err != nil {
			t.Fatalf("%d trials: %v", n, err)
		}
		var doc struct {
			Workloads []struct {
				Metrics []struct {
					Comparisons []struct {
						N      int
						Change *struct{ Lo, Hi *float64 }
					}
				}
			}
			Claims   []any
			Warnings []string
		}
		if err := json.Unmarshal([]byte(b.String()), &doc); err != nil {
			t.Fatalf("%d trials: %v", n, err)
		}
		if doc.Claims == nil || doc.Warnings == nil || doc.Workloads == nil {
			t.Errorf("%d trials: a list is null", n)
		}
		for _, w := range doc.Workloads {
			for _, m := range w.Metrics {
				for _, c := range m.Comparisons {
					if c.Change != nil && c.N < 8 && (c.Change.Lo != nil || c.Change.Hi != nil) {
						t.Errorf("%d blocks at 99 %%: interval %v to %v, want no ends", c.N, *c.Change.Lo, *c.Change.Hi)
					}
				}
			}
		}
	}
}
