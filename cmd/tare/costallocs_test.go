package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// TestAllocsOfAnotherTime warns where a CPU profile stands beside allocations that are
// of all since the program began, or of another time.
func TestAllocsOfAnotherTime(t *testing.T) {
	dir := t.TempDir()
	file := func(kind pprof.Kind, d time.Duration) string {
		name := filepath.Join(dir, fmt.Sprintf("%d-%d.pb.gz", kind, d))
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p := pprof.New(kind, d, []cost.Stack{{Frames: []cost.Frame{{Func: "main.work"}}, Count: 100, Value: 1e9}})
		if err := p.Write(f); err != nil {
			t.Fatal(err)
		}
		return name
	}
	cpu := file(pprof.CPU, 30*time.Second)
	for _, tt := range []struct {
		files []string
		want  string // "" = no warning
	}{
		{[]string{cpu, file(pprof.Allocs, 0)}, "of all since the program began"},
		{[]string{file(pprof.Allocs, 5*time.Second), cpu}, "of 5 s and the CPU profile of 30,"},
		{[]string{cpu, file(pprof.Allocs, 31*time.Second)}, ""},
		{[]string{file(pprof.Allocs, 0)}, ""},
		{[]string{cpu}, ""},
	} {
		b := &bill{}
		if err := b.read(tt.files); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(b.warnings); len(b.warnings) > 1 || (tt.want == "") != (len(b.warnings) == 0) || !strings.Contains(got, tt.want) {
			t.Errorf("%q: warnings %s, want %q", tt.files, got, tt.want)
		}
	}
}
