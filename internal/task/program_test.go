package task_test

import (
	"testing"

	"github.com/tarehq/tare/internal/task"
)

func TestProgramName(t *testing.T) {
	for exe, want := range map[string]string{
		"/usr/bin/api":                        "api",
		"/usr/bin/api (deleted)":              "api",
		"/srv/große µ":                        "große µ",
		"/srv/a\nline\x1b[1m\xff\u202e\u0085": "a\ufffdline\ufffd[1m\ufffd\ufffd\ufffd",
	} {
		if got := task.ProgramName(exe); got != want {
			t.Errorf("%q: got %q, want %q", exe, got, want)
		}
	}
}
