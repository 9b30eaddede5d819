package proc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tarehq/tare/cost/doctor/proc"
)

// TestIdle says of a process that is stopped, and of one that has started others, what
// keeps it from running.
func TestIdle(t *testing.T) {
	const rest = " 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 12 0 100 9 9 9\n"
	const others = "process 7 has started others, of which the service may be one: "
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string // "" of nothing to say
	}{
		{"sleeping", map[string]string{"7/stat": "7 (a) T) S" + rest, "7/task/7/children": ""}, ""},
		{"stopped", map[string]string{"7/stat": "7 (shop) T" + rest}, "process 7 is stopped, by a signal or by a debugger"},
		{"traced", map[string]string{"7/stat": "7 (shop) t" + rest, "7/task/7/children": "8 "}, "process 7 is stopped, by a signal or by a debugger"},
		{"by two threads", map[string]string{
			"7/stat": "7 (go) S" + rest, "7/task/7/children": "8 ", "7/task/9/children": "10 11 ",
			"8/comm": "shop\n", "10/comm": "shop\n", "11/comm": "logs\n",
		}, others + "8 shop, 10 shop, 11 logs"},
		{"many", map[string]string{
			"7/stat": "7 (go) S" + rest, "7/task/7/children": "11 12 13 14 15 16 17 ",
			"11/comm": "a\n", "12/comm": "a\n", "13/comm": "a\n", "14/comm": "a\n", "15/comm": "a\n",
		}, others + "11 a, 12 a, 13 a, 14 a, 15 a, and 2 more"},
		{"gone", nil, ""},
	} {
		dir := t.TempDir()
		for name, text := range tc.files {
			file := filepath.Join(dir, "proc", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		if err := proc.IdleBelow(dir, 7); err != nil {
			got = fmt.Sprint(err)
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
