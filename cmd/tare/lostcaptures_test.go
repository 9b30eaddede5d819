package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// TestLostCaptures profiled two arms, of which one gave no profile: it is named, and
// asked for alone it is told why there is nothing.
func TestLostCaptures(t *testing.T) {
	request := cost.Stack{Count: 1000, Value: 1e10, Frames: []cost.Frame{{Func: "example.org/shop.(*cart).ServeHTTP"}, {Func: "net/http.(*conn).serve"}}}
	var cpu bytes.Buffer
	if err := pprof.New(pprof.CPU, time.Second, []cost.Stack{request}).Write(&cpu); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	s := study.Study{Name: "shop", Arms: []study.Arm{{Name: "whole"}, {Name: "lost"}}, Workloads: []study.Workload{{Name: "half"}}}
	w, err := record.Create(dir, record.Manifest{Study: s})
	if err != nil {
		t.Fatal(err)
	}
	whole := record.Capture{Arm: "whole", Workload: "half", Elapsed: time.Second, Requests: 1000, CPU: time.Second, Seen: []record.Seen{{Source: study.Pprof}}}
	lost := record.Capture{Seq: 1, Arm: "lost", Workload: "half", Invalid: []string{"no request was answered"}}
	_, err = w.AppendCapture(whole, []record.Profile{{Source: study.Pprof, Kind: "cpu", Data: cpu.Bytes()}})
	_, errLost := w.AppendCapture(lost, nil)
	if err := errors.Join(err, errLost, w.Finish("decided")); err != nil {
		t.Fatal(err)
	}

	const why = "lost under half: no capture counts: no request was answered"
	for _, tc := range []struct {
		args  []string
		alone bool
	}{
		{[]string{"cost", "--study", dir}, false},
		{[]string{"doctor", dir}, false},
		{[]string{"cost", "--study", dir, "--arm", "lost"}, true},
		{[]string{"doctor", dir, "--arm", "lost"}, true},
		{[]string{"diff", dir + ":whole", dir + ":lost"}, true},
	} {
		status, out, said := tare(t, tc.args...)
		if !strings.Contains(said, why) || (out == "") != tc.alone || (status == cli.ExitFailed) != tc.alone {
			t.Errorf("%v: status %d, %d bytes, said %q, want %q", tc.args[:1], status, len(out), said, why)
		}
	}
}
