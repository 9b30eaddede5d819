package load_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// Slices that are told of as they are sealed are those of the result, and their times are
// all response times.
func TestSealed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer s.Close()
	var told []load.Slice
	times := hist.New()
	res, err := load.Run(t.Context(), load.Options{
		Targets: []load.Target{{URL: s.URL}}, Connections: 2, Duration: 400 * time.Millisecond, Slice: 50 * time.Millisecond,
		Sealed: func(s load.Slice, h *hist.Hist) {
			if h.Count() != s.Answered {
				t.Errorf("the slice at %v has %d answers and %d times", s.At, s.Answered, h.Count())
			}
			told = append(told, s)
			times.Merge(h)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	some := slices.DeleteFunc(slices.Clone(res.Series), func(s load.Slice) bool { return s.Answered+s.Failed+s.Dropped == 0 })
	told = slices.DeleteFunc(told, func(s load.Slice) bool { return s.Answered+s.Failed+s.Dropped == 0 })
	if !slices.Equal(told, some) || len(told) == 0 {
		t.Errorf("told of %v, and the series is %v", told, res.Series)
	}
	if !times.Equal(res.Response) {
		t.Errorf("told of %d times, and %d were recorded", times.Count(), res.Response.Count())
	}
}
