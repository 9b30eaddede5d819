package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/doctor"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// TestDoctorRun keeps a profile of much JSON in a run, as of one arm, and has the
// run examined.
func TestDoctorRun(t *testing.T) {
	asked := []cost.Frame{{Func: "example.org/shop.(*cart).ServeHTTP"}, {Func: "net/http.serverHandler.ServeHTTP"}, {Func: "net/http.(*conn).serve"}}
	var cpu bytes.Buffer
	if err := pprof.New(pprof.CPU, time.Second, []cost.Stack{
		{Count: 30, Value: 3e8, Frames: asked},
		{Count: 70, Value: 7e8, Frames: append([]cost.Frame{{Func: "encoding/json.Marshal"}}, asked...)},
	}).Write(&cpu); err != nil {
		t.Fatal(err)
	}
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
		status, out, said := tare(t, append([]string{"doctor", "--json", dir}, tc.args...)...)
		var told []*doctor.Diagnosis
		if err := json.Unmarshal([]byte(out), &told); err != nil || len(told) != tc.want {
			t.Fatalf("%v: status %d, %d diagnoses, %v: %s", tc.args, status, len(told), err, said)
		}
		d := told[0]
		if !strings.HasPrefix(d.Subject, "sick under half, in ") || d.Requests != 1000 {
			t.Errorf("%v: diagnosis of %q over %g requests, want of sick over 1000", tc.args, d.Subject, d.Requests)
		}
		if status != cli.ExitThreshold || len(d.Findings) == 0 || d.Findings[0].Rule != "json" {
			t.Errorf("%v: status %d, %+v, want %d and json first", tc.args, status, d.Findings[:min(1, len(d.Findings))], cli.ExitThreshold)
		}
	}

	for _, args := range [][]string{{"--arm", "none"}, {"--load", "http://localhost/"}} {
		if status, _, said := tare(t, append([]string{"doctor", dir}, args...)...); status == 0 || said == "" {
			t.Errorf("%v: status %d, %q, want a refusal", args, status, said)
		}
	}
}

// TestDoctorStatus examines saved evidence of services that were idle and busy.
func TestDoctorStatus(t *testing.T) {
	request := cost.Stack{Count: 1000, Value: 1e10, Frames: []cost.Frame{{Func: "example.org/shop.(*cart).ServeHTTP"}, {Func: "net/http.serverHandler.ServeHTTP"}, {Func: "net/http.(*conn).serve"}}}
	formatted := request
	formatted.Frames = append([]cost.Frame{{Func: "fmt.Fprintf"}}, request.Frames...)
	few := formatted
	few.Count, few.Value = 33, 3.3e8 // of 1,033: beyond 3 %, and its interval not
	for _, tc := range []struct {
		name  string
		cpu   []cost.Stack
		want  int
		wants string
	}{
		{"idle", []cost.Stack{}, cli.ExitInconclusive, "inconclusive: no findings"},
		{"busy", []cost.Stack{request}, 0, "nothing was found; "},
		{"perhaps", []cost.Stack{request, few}, cli.ExitInconclusive, "not certain    format 3.2 % of the CPU (fires at more than 3 % of the CPU)"},
		{"perhaps, in a word", []cost.Stack{request, few}, cli.ExitInconclusive, "inconclusive: nothing was found for certain"},
		{"sick", []cost.Stack{request, formatted}, cli.ExitThreshold, "one finding"},
	} {
		e := doctor.Evidence{Subject: tc.name, Window: cost.Window{Duration: 10 * time.Second}, CPU: tc.cpu}
		var saved, out, errs bytes.Buffer
		if err := e.Save(&saved); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "evidence.gz")
		if err := os.WriteFile(file, saved.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		status := run(t.Context(), []string{"doctor", "--from", file}, &cli.Terminal{Out: &out, Err: &errs, Width: 120})
		if status != tc.want || !strings.Contains(out.String(), tc.wants) {
			t.Errorf("%s: status %d, %s%s\nwant %d and %q", tc.name, status, out.String(), errs.String(), tc.want, tc.wants)
		}
	}
}

// TestDoctorForeign names a process that is no Go program.
func TestDoctorForeign(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("there is no sleep, or no /proc: ", err)
	}
	cmd := exec.Command(sleep, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	status, _, said := tare(t, "doctor", "--for", "1s", strconv.Itoa(cmd.Process.Pid))
	if status != cli.ExitFailed || !strings.Contains(said, "it is not a Go program") {
		t.Errorf("status %d, %s, want %d and that it is not a Go program", status, said, cli.ExitFailed)
	}
}
