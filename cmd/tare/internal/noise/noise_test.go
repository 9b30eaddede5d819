package noise_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab/record"
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
