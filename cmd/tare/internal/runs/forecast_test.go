package runs

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/studies"
)

// calibrate keeps a calibration of this machine, of now, for the test.
func calibrate(t *testing.T, floor map[string]float64) {
	t.Helper()
	cache, err := noise.Calibrations()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := cache.Write(noise.Calibration{When: time.Now(), Machine: noise.Machine(), Blocks: 30, Floor: floor}); err != nil {
		t.Fatal(err)
	}
}

func TestAnnounceBudget(t *testing.T) {
	tests := []struct {
		name, study string
		budget      time.Duration
		blocks      int
		floor       map[string]float64 // nil: not calibrated
		want, never string
	}{
		{"calibrated", "tuning", 24 * time.Hour, 0, map[string]float64{"cpu_per_request": .01}, "smallest effect on CPU per request that they should detect: about +2.0 %", "unknown"},
		{"fewer blocks than calibrated", "tuning", 13 * time.Minute, 0, map[string]float64{"cpu_per_request": .01}, "about +3.9 %", "unknown"},
		{"metric not calibrated", "routers", 24 * time.Hour, 0, map[string]float64{"cpu_per_request": .01}, "the calibration has no floor for it", "0.0 %"},
		{"not calibrated", "routers", 24 * time.Hour, 0, nil, "run `tare calibrate` once", "0.0 %"},
		{"few blocks allowed", "nesting", 24 * time.Hour, 4, nil, "captures: --blocks allows no more\ntoo few to detect any effect", "calibrate"},
		{"fewer blocks allowed than calibrated", "tuning", 24 * time.Hour, 15, map[string]float64{"cpu_per_request": .01}, "about +2.9 %", "unknown"},
		{"more blocks allowed than fit", "nesting", time.Minute, 12, nil, "too few to detect any effect", "--blocks"},
		{"too short", "nesting", time.Minute, 0, nil, "too few to detect any effect", "calibrate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			if tt.floor != nil {
				calibrate(t, tt.floor)
			}
			s, err := studies.Named(tt.study)
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			announceBudget(&cli.Terminal{Err: &said}, s, tt.budget, tt.blocks)
			if got := said.String(); !strings.Contains(got, tt.want) || strings.Contains(got, tt.never) {
				t.Errorf("--budget %s %s: got %q, want %q in it and no %q", tt.budget, tt.study, got, tt.want, tt.never)
			}
		})
	}
}
