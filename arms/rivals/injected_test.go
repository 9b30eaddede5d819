package rivals_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/injected/work"
)

// What is injected changes no answer, is done once a request, and only if it is
// asked for; profiles are to be had of every framework.
func TestInjectedAnswerAlike(t *testing.T) {
	want := answer{http.StatusOK, "text/plain", work.Body, "6"}
	dir, names := build(t, "arms/injected/work")
	for _, name := range names {
		for _, tc := range []struct {
			args []string
			done []string
		}{
			{[]string{"--spin", "0", "--alloc", "0"}, nil},
			{[]string{"--spin", "1us", "--alloc", "0", "--lock", "1us"}, []string{"spin", "lock"}},
			{[]string{"--spin", "1us", "--alloc", "10", "--block", "1us", "--lock", "1us", "--slowlog", "1us"}, []string{"spin", "alloc", "block", "lock", "log"}},
		} {
			r := start(t, filepath.Join(dir, name), tc.args...)
			for range 2 {
				if got := r.ask(t, http.MethodGet, "/", ""); got != want {
					t.Errorf("%s %v: got %v, want %v", name, tc.args, got, want)
				}
			}
			calls := map[string]int64{}
			for _, what := range tc.done {
				calls[what] = 2
			}
			checkTruth(t, r, calls)
			if got := r.loop(t, []arm.LoopRequest{{Target: "/"}}); len(got) != 1 || got[0] != want.inLoop() {
				t.Errorf("%s %v in the loop: got %v, want %v", name, tc.args, got, want.inLoop())
			}
			if got := r.ask(t, http.MethodGet, "/debug/pprof/cmdline", ""); got.status != http.StatusOK {
				t.Errorf("%s: asked for its profiles it answers %v", name, got)
			}
			r.stop()
			if r.stdout.Len() > 0 || r.stderr.Len() > 0 {
				t.Errorf("%s: output: got %q and %q, want none", name, &r.stdout, &r.stderr)
			}
		}
	}
}

func checkTruth(t *testing.T, r *rival, calls map[string]int64) {
	t.Helper()
	var truth map[string]struct {
		Calls int64
		NS    int64
	}
	if err := json.Unmarshal([]byte(r.ask(t, http.MethodGet, "/truth", "").body), &truth); err != nil {
		t.Fatal(err)
	}
	if len(truth) != 5 {
		t.Errorf("got the truth of %d costs, want 5", len(truth))
	}
	for what, got := range truth {
		waits := what == "block" || what == "log" // whose wall time is counted; two calls are too few for the others' CPU time
		if got.Calls != calls[what] || waits && got.Calls > 0 && got.NS <= 0 {
			t.Errorf("%s: got %+v, want %d calls, and their time where they wait", what, got, calls[what])
		}
	}
}
