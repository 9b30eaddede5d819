package pprof_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

// TestOrigin keeps when a profile began and of which build it is, also in what is written
// with labels.
func TestOrigin(t *testing.T) {
	p := pprof.New(pprof.CPU, time.Second, []cost.Stack{{Frames: []cost.Frame{{Func: "main.main"}}, Count: 1, Value: 1e9}})
	if p.BuildID() != "" || !p.Begun().IsZero() {
		t.Errorf("got build %q of %s, want neither known", p.BuildID(), p.Begun())
	}
	begun := time.Date(2026, 11, 26, 14, 5, 0, 0, time.UTC)
	p.SetOrigin(begun, "a b/c")
	p.SetRequests(7, 0)
	var b bytes.Buffer
	if err := p.Label(&b); err != nil {
		t.Fatal(err)
	}
	again, err := pprof.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := again.Requests(); again.BuildID() != "a b/c" || !again.Begun().Equal(begun) || n != 7 || len(again.Warnings) > 0 {
		t.Errorf("got build %q of %s, %v requests, %v", again.BuildID(), again.Begun(), n, again.Warnings)
	}
}
