package noise_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/stats"
)

// A calibration holds for seven days. It does not hold while the clock is behind it.
func TestCalibrationAges(t *testing.T) {
	for age, want := range map[time.Duration]bool{time.Minute: true, noise.FloorAge - time.Hour: true, noise.FloorAge + time.Hour: false, -time.Hour: false, -1000 * time.Hour: false} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		cache, err := noise.Calibrations()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(cache.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cal := noise.Calibration{When: time.Now().Add(-age), Machine: noise.Machine(), Blocks: 30, Floor: map[string]float64{"cpu_per_request": .01}}
		if err := cache.Write(cal); err != nil {
			t.Fatal(err)
		}
		var m record.Manifest
		noise.Describe(&m)
		warned := strings.Contains(strings.Join(m.Warnings, "\n"), "ahead of the clock")
		if got := len(m.Floor) > 0; got != want || warned != (age < 0) {
			t.Errorf("calibrated %s ago: floor %v, warnings %q, want a floor: %t", age, m.Floor, m.Warnings, want)
		}
	}
}

// Reports say what the studies of this machine found, over all sittings under the last
// one's setting.
func TestSelfTestInReports(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var m record.Manifest
	if noise.Describe(&m); m.SelfTest != "" {
		t.Errorf("before any study: got %q", m.SelfTest)
	}
	cache, err := noise.SelfTests()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for i, machine := range []string{noise.Machine(), "another", noise.Machine(), noise.Machine()} {
		st := noise.Study{
			Setting: noise.Setting{Looks: []int{8}, Measure: 2 * time.Second, Metric: "cpu_per_request"}, Workload: "half",
			Machine: machine, Sitting: now.Add(time.Duration(i) * time.Hour), When: now.Add(time.Duration(i) * 24 * time.Hour),
			Paired: []float64{0.01}, Control: 30_000, Verdict: stats.Slower,
		}
		if i == 0 {
			st.Measure = 3 * time.Second
		}
		if err := cache.Add(st); err != nil {
			t.Fatal(err)
		}
	}
	old := noise.Study{
		Setting: noise.Setting{Looks: []int{8}, Measure: 2 * time.Second, Metric: "cpu_per_request"}, Machine: noise.Machine(),
		Sitting: now, When: now.Add(1000 * time.Hour), Paired: []float64{0.01}, Control: 30_000, Verdict: stats.Slower, // of an older tare
	}
	if err := cache.Add(old); err != nil {
		t.Fatal(err)
	}
	noise.Describe(&m)
	if want := "2 of 2 A/A studies by cpu_per_request on this machine gave a false verdict"; !strings.Contains(m.SelfTest, want) || !strings.HasSuffix(m.SelfTest, "; 2 sittings until 2026-11-29") {
		t.Errorf("got %q, want %q of 2 sittings until 2026-11-29", m.SelfTest, want)
	}
}
