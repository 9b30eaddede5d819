package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// TestDoctorRun keeps a profile of much JSON in a run, as of one arm, and has the
// run examined.
func TestDoctorRun(t *testing.T) {
	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		t.Fatal(err)
	}
	much := make([]doctor.Finding, 100)
	begun := time.Now()
	for time.Since(begun) < time.Second {
		if _, err := json.Marshal(much); err != nil {
			t.Error(err)
			break
		}
	}
	pprof.StopCPUProfile()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Manifest{Study: study.Study{Name: "shop"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := []record.Seen{{Source: study.Pprof}}
	for i, arm := range []string{"sick", "other"} {
		c := record.Capture{Seq: i, Arm: arm, Workload: "half", Elapsed: time.Second, Requests: 1000, Seen: seen}
		if _, err := w.AppendCapture(c, []record.Profile{{Source: study.Pprof, Kind: "cpu", Data: cpu.Bytes()}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish("decided"); err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		args []string
		want int
	}{{nil, 2}, {[]string{"--arm", "sick"}, 1}} {
		var out, errs bytes.Buffer
		status := run(t.Context(), append([]string{"doctor", "--json", dir}, tc.args...), &terminal{out: &out, err: &errs, width: 80})
		var told []*doctor.Diagnosis
		if err := json.Unmarshal(out.Bytes(), &told); err != nil || len(told) != tc.want {
			t.Fatalf("%v: status %d, %d diagnoses, %v: %s", tc.args, status, len(told), err, errs.String())
		}
		d := told[0]
		if !strings.HasPrefix(d.Subject, "sick under half, in ") || d.Requests != 1000 {
			t.Errorf("%v: diagnosis of %q over %g requests, want of sick over 1000", tc.args, d.Subject, d.Requests)
		}
		for _, b := range d.Blind {
			if b.Rule == "json" {
				t.Skipf("the machine gave this test too little CPU: %s", b.Reason)
			}
		}
		if status != exitThreshold || len(d.Findings) == 0 || d.Findings[0].Rule != "json" {
			t.Errorf("%v: status %d, %+v, want %d and json first", tc.args, status, d.Findings[:min(1, len(d.Findings))], exitThreshold)
		}
	}

	for _, args := range [][]string{{"--arm", "none"}, {"--load", "http://localhost/"}} {
		var out, errs bytes.Buffer
		if status := run(t.Context(), append([]string{"doctor", dir}, args...), &terminal{out: &out, err: &errs, width: 80}); status == 0 || errs.Len() == 0 {
			t.Errorf("%v: status %d, %q, want a refusal", args, status, errs.String())
		}
	}
}
