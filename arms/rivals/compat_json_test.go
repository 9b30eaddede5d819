package rivals_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/arms/engine/answers"
)

// The arms of the compat study answer the same, traced or not.
func TestTracedAnswersAlike(t *testing.T) {
	program := filepath.Join(buildAll(t), "compat-json")
	body := string(answers.Object())
	want := answer{http.StatusOK, answers.JSON, body, fmt.Sprint(len(body))}
	for _, server := range []string{"nethttp", "serve", "serve-reuse", "fiber"} {
		for _, traced := range []string{"-traced=false", "-traced"} {
			t.Run(server+traced, func(t *testing.T) {
				r := start(t, program, "-server", server, traced)
				for range 2 { // on one connection, where what the first left behind would show
					if got := r.ask(t, http.MethodGet, answers.JSONPath, ""); got != want {
						t.Errorf("got %.200v, want %.200v", got, want)
					}
				}
				r.stop()
				if r.stdout.Len() > 0 || r.stderr.Len() > 0 {
					t.Errorf("output: got %q and %q, want none", &r.stdout, &r.stderr)
				}
			})
		}
	}
	if out, err := exec.Command(program, "-server", "gin").CombinedOutput(); err == nil {
		t.Errorf("an unknown server: got %q and no error", out)
	}
}
