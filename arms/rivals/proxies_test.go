package rivals_test

import (
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/arms/engine/answers"
)

// TestProxiesPassAlike has each proxy pass on what the upstreams answer.
func TestProxiesPassAlike(t *testing.T) {
	dir, names := build(t, "upstreams.Arm(")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r := start(t, filepath.Join(dir, name))
			for range 2 { // on one connection, where what the first left behind would show
				for path, want := range map[string]answer{
					answers.PlainPath: {200, answers.Text, "hello", "5"},
					answers.JSONPath:  {200, answers.JSON, string(answers.Object()), "1024"},
					answers.PagePath:  {200, answers.Text, string(answers.Page()), "65536"},
					"/other":          {404, answers.Text, answers.NotFound, "19"},
				} {
					if got := r.ask(t, "GET", path, ""); got != want {
						t.Errorf("GET %s: got %.200v, want %.200v", path, got, want)
					}
				}
			}
			r.stop()
			if r.stdout.Len() > 0 || r.stderr.Len() > 0 {
				t.Errorf("output: got %q and %q, want none", &r.stdout, &r.stderr)
			}
		})
	}
}
