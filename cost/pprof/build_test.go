package pprof_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// TestNew checks that stacks come back from a profile as they went in, and that
// labels take none of them away.
func TestNew(t *testing.T) {
	main := cost.Frame{Func: "main.main", File: "/src/main.go", Line: 7, Decl: 3}
	stacks := []cost.Stack{
		{Frames: []cost.Frame{{Func: "[kernel] tcp_sendmsg"}, {Func: "main.work", File: "/src/main.go", Line: 12, Decl: 10}, main}, Count: 3, Value: 30_000_000},
		{Frames: []cost.Frame{{Func: "main.work", File: "/src/main.go", Line: 13, Decl: 10}, main}, Count: 1, Value: 10_000_000},
	}
	for _, kind := range []pprof.Kind{pprof.CPU, pprof.Allocs} {
		p := pprof.New(kind, 2*time.Second, stacks)
		for what, write := range map[string]func(*bytes.Buffer) error{
			"written":  func(b *bytes.Buffer) error { return p.Write(b) },
			"labelled": func(b *bytes.Buffer) error { return p.Label(b) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			again, err := pprof.Read(&b)
			if err != nil {
				t.Fatal(err)
			}
			if again.Kind != kind || again.Duration != 2*time.Second {
				t.Errorf("%s: kind %s over %s, want %s over 2s", what, again.Kind, again.Duration, kind)
			}
			if !reflect.DeepEqual(again.Stacks, stacks) {
				t.Errorf("%s %s profile has stacks\n%v, want\n%v", what, kind, again.Stacks, stacks)
			}
		}
	}
}
