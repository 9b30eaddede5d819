package rivals_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/arms/arm"
	"github.com/tarehq/tare/arms/layers/plan"
)

// The layers of all frameworks see what they should, or the arm would panic, and
// change nothing.
func TestLayersAnswerAlike(t *testing.T) {
	want := answer{http.StatusOK, plan.JSON, string(plan.Body()), "1024"}
	dir, names := build(t, "arms/layers/plan")
	for _, name := range names {
		for _, depth := range []string{"0", "1", "50"} {
			t.Run(name+"/"+depth, func(t *testing.T) {
				r := start(t, filepath.Join(dir, name), "--depth", depth)
				var requests []arm.LoopRequest
				for _, path := range []string{plan.Noop, plan.Value, plan.Record} {
					requests = append(requests, arm.LoopRequest{Target: path})
					for range 2 { // on one connection, where what the first left behind would show
						if got := r.ask(t, http.MethodGet, path, ""); got != want {
							t.Errorf("%s: got %.200v, want %.200v", path, got, want)
						}
					}
				}
				for i, got := range r.loop(t, requests) {
					if got != want.inLoop() {
						t.Errorf("%s in the loop: got %v, want %v", requests[i].Target, got, want.inLoop())
					}
				}
				r.stop()
				if r.stdout.Len() > 0 || r.stderr.Len() > 0 {
					t.Errorf("output: got %q and %q, want none", &r.stdout, &r.stderr)
				}
			})
		}
	}
}
