package rivals_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarehq/tare/arms/engine/answers"
)

func TestEnginesAnswerAlike(t *testing.T) {
	echo := strings.Repeat("0123456789abcdef", 64)
	tests := []struct {
		method, path, body string
		status             int
		contentType, want  string
	}{
		{"GET", "/plain", "", 200, answers.Text, "hello"},
		{"GET", "/json", "", 200, answers.JSON, string(answers.Object())},
		{"GET", "/page", "", 200, answers.Text, string(answers.Page())},
		{"POST", "/echo", echo, 200, answers.Text, echo},
		{"POST", answers.CountPath, strings.Repeat(echo, 64), 200, answers.Text, "65536"},
		{"GET", answers.LongPath, "", 200, answers.Text, string(answers.Long())},
		{"GET", "/other", "", 404, answers.Text, answers.NotFound},
	}
	dir, names := build(t, "arms/engine/answers")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r := start(t, filepath.Join(dir, name))
			for range 2 { // on one connection, where what the first left behind would show
				for _, tt := range tests {
					if (tt.path == answers.CountPath || tt.path == answers.LongPath) && name != "engine-fasthttp" {
						continue // which alone stands beside serve where those are measured
					}
					want := answer{tt.status, tt.contentType, tt.want, fmt.Sprint(len(tt.want))}
					if got := r.ask(t, tt.method, tt.path, tt.body); got != want {
						t.Errorf("%s %s: got %.200v, want %.200v", tt.method, tt.path, got, want)
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
