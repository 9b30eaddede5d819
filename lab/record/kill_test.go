package record_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats/hist"
)

// writerEnv makes the test binary a process that appends trials for ever.
const writerEnv = "TARE_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		fmt.Fprintln(os.Stderr, writeForEver(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForEver takes up the run in dir and prints each trial's number once
// Append has returned. It ends with an error only (a closed pipe at last).
func writeForEver(dir string) error {
	w, run, err := record.Resume(dir)
	if err != nil {
		return err
	}
	h := &record.Histograms{Response: hist.New()}
	for i := len(run.Trials); ; i++ {
		h.Response.Record(int64(i) * 1000)
		if err := w.Append(trial(i), h); err != nil {
			return err
		}
		if err := w.Update(func(m *record.Manifest) { m.Seed++ }); err != nil {
			return err
		}
		if _, err := fmt.Println(i); err != nil {
			return err
		}
	}
}

// TestKilledWriter kills a writing process at random moments, over and over on
// one folder, and shows that every trial it had acknowledged is there.
func TestKilledWriter(t *testing.T) {
	w, dir := create(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 15 {
		acked := killOne(t, dir, rng)
		r := open(t, dir)
		// One more may be there: killed after its sync, before its word.
		if n := len(r.Trials); n != acked+1 && n != acked+2 {
			t.Fatalf("after the kill: %d trials, want %d acknowledged or one more", n, acked+1)
		}
		for i, got := range r.Trials {
			if got.Seq != i {
				t.Fatalf("trial %d has number %d", i, got.Seq)
			}
			if _, err := r.Histograms(got); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "hist", "*.hlog")); len(left) == 0 {
		t.Error("no histogram was kept")
	}
}

// killOne runs a writer until at least one trial, kills it at a random moment
// after, and returns the last number it acknowledged.
func killOne(t *testing.T, dir string, rng *rand.Rand) (acked int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acked = -1
	lines := bufio.NewScanner(out)
	for until := 1 + rng.IntN(5); lines.Scan(); until-- {
		if _, err := fmt.Sscan(lines.Text(), &acked); err != nil {
			t.Errorf("reading %q: %v", lines.Text(), err)
		}
		if until == 1 {
			time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the writer ended by itself")
	}
	if acked < 0 {
		t.Fatal("the writer acknowledged nothing")
	}
	return acked
}
