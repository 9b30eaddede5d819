//go:build linux && amd64

package watchverb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// goBuild builds a package's program.
func goBuild(t testing.TB, dir, pkg string) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("go", "build", "-o", exe, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	return exe
}

// serve starts so many programs, each from a file of its own, as if it were of another
// service, and returns their numbers. They pause for so long between two requests.
func serve(t testing.TB, services int, pause time.Duration) (pids []string) {
	t.Helper()
	program, err := os.ReadFile(goBuild(t, "../../../../cost/watch/testdata/service", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for k := range services {
		exe := filepath.Join(dir, fmt.Sprintf("service-%02d", k))
		if err := os.WriteFile(exe, program, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "PAUSE="+pause.String(), "GOMAXPROCS=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		pids = append(pids, strconv.Itoa(cmd.Process.Pid))
	}
	return pids
}

// watchAll has a tare watch processes, with all that it can offer, and returns what it
// printed.
func watchAll(t testing.TB, exe string, every, whole time.Duration, pids ...string) (all []record) {
	t.Helper()
	args := []string{"watch", "--json", "--every", every.String(), "--for", whole.String(), "--listen", "127.0.0.1:0", "--keep", t.TempDir()}
	cmd := exec.Command(exe, append(args, pids...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if strings.Contains(errs.String(), "needs") {
			t.Skipf("SKIPPED: no sampling here: %s", &errs)
		}
		t.Fatalf("%v\n%s", err, &errs)
	}
	for dec := json.NewDecoder(&out); dec.More(); {
		var r record
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestFifty watches fifty services, each with a program of its own: tare keeps to 100 MiB.
func TestFifty(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: memory with fifty services: builds the command")
	}
	const services, most = 50, 100 << 20
	pids := serve(t, services, 100*time.Millisecond)
	all := watchAll(t, goBuild(t, ".", "github.com/tarehq/tare/cmd/tare"), 2*time.Second, 7*time.Second, pids...)
	if len(all) < 2 {
		t.Fatalf("%d intervals", len(all))
	}
	var memory uint64
	for _, r := range all[1:] {
		memory = max(memory, r.Own.Memory)
	}
	last := all[len(all)-2]
	t.Logf("at most %d MiB, %.2f %% of a core in the last whole interval, %d services", memory>>20, 100*last.Own.CPU, len(last.Services))
	if memory > most || memory == 0 {
		t.Errorf("it took %d MiB, want at most %d", memory>>20, most>>20)
	}
	if len(last.Services) != services || last.Services[0].CPU <= 0 {
		t.Errorf("%d services were seen, want %d, with what they used", len(last.Services), services)
	}
}

// BenchmarkOwn says what watching takes: of its own CPU and of the services', as shares of
// one core and of what the services used, and memory. Three services are watched for two
// minutes, fifty that do little for eleven; the first minute, which has the cost of beginning
// in it, is left out. TARE names another program to compare with.
//
//	go test ./cmd/tare/internal/watchverb -run - -bench Own -benchtime 1x -timeout 20m
func BenchmarkOwn(b *testing.B) {
	b.Run("services=3", func(b *testing.B) { benchmarkOwn(b, 3, time.Millisecond, 131*time.Second) })
	b.Run("services=50", func(b *testing.B) { benchmarkOwn(b, 50, 50*time.Millisecond, 11*time.Minute) })
}

func benchmarkOwn(b *testing.B, n int, pause, whole time.Duration) {
	exe := os.Getenv("TARE")
	if exe == "" {
		exe = goBuild(b, ".", "github.com/tarehq/tare/cmd/tare")
	} else if _, err := os.Stat(exe); errors.Is(err, os.ErrNotExist) {
		b.Fatal(err)
	}
	pids := serve(b, n, pause)
	var own, kernel, services, seconds float64
	var memory uint64
	var backoff int
	for range b.N {
		all := watchAll(b, exe, 10*time.Second, whole, pids...)
		var begun float64 // seconds since the start
		for _, r := range all[:len(all)-1] {
			if begun += r.Seconds; begun <= 60 {
				continue
			}
			own += r.Own.CPU * r.Seconds
			kernel += r.Own.Kernel * r.Seconds
			seconds += r.Seconds
			memory, backoff = max(memory, r.Own.Memory), max(backoff, r.Own.Backoff)
			for _, s := range r.Services {
				services += s.Cores * r.Seconds
			}
		}
	}
	b.ReportMetric(100*own/seconds, "%core-own")
	b.ReportMetric(100*kernel/seconds, "%core-kernel")
	b.ReportMetric(100*(own+kernel)/seconds, "%core")
	b.ReportMetric(100*services/seconds, "%core-services")
	b.ReportMetric(100*(own+kernel)/services, "%services")
	b.ReportMetric(float64(memory>>20), "MiB")
	b.ReportMetric(float64(backoff), "halved")
	b.ReportMetric(0, "ns/op")
}
