package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/studies"
)

// calibrate keeps a calibration of this machine, of now, for the test.
func calibrate(t *testing.T, floor map[string]float64) {
	t.Helper()
	calibrateAt(t, time.Now(), floor)
}

func calibrateAt(t *testing.T, when time.Time, floor map[string]float64) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, err := cacheDir("calibration")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(calibration{When: when, Machine: machine(), Blocks: 30, Floor: floor})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "floor.json"), text, 0o644); err != nil {
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
		{"calibrated", "tuning", 24 * time.Hour, 0, map[string]float64{"cpu_per_request": .01}, "an effect on CPU per request of about +2.0 %", "not known"},
		{"fewer blocks than calibrated", "tuning", 10 * time.Minute, 0, map[string]float64{"cpu_per_request": .01}, "about +3.7 %", "not known"},
		{"metric not calibrated", "routers", 24 * time.Hour, 0, map[string]float64{"cpu_per_request": .01}, "the calibration kept has no floor for it", "0.0 %"},
		{"not calibrated", "routers", 24 * time.Hour, 0, nil, "run `tare calibrate` once", "0.0 %"},
		{"few blocks allowed", "nesting", 24 * time.Hour, 4, nil, "captures: 4, since --blocks allows no more\nthat is too few to tell any effect apart", "calibrate"},
		{"fewer blocks allowed than calibrated", "tuning", 24 * time.Hour, 15, map[string]float64{"cpu_per_request": .01}, "about +2.9 %", "not known"},
		{"more blocks allowed than fit", "nesting", time.Minute, 12, nil, "too few to tell any effect apart", "--blocks"},
		{"too short", "nesting", time.Minute, 0, nil, "too few to tell any effect apart", "calibrate"},
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

// A calibration holds for seven days, and not for as long as a clock that was set back
// lies behind it.
func TestCalibrationAges(t *testing.T) {
	for age, want := range map[time.Duration]bool{time.Minute: true, floorKept - time.Hour: true, floorKept + time.Hour: false, -time.Hour: false, -1000 * time.Hour: false} {
		calibrateAt(t, time.Now().Add(-age), map[string]float64{"cpu_per_request": .01})
		var m record.Manifest
		calibrated(&m)
		told := strings.Contains(strings.Join(m.Warnings, "\n"), "ahead of the clock")
		if got := len(m.Floor) > 0; got != want || told != (age < 0) {
			t.Errorf("calibrated %s ago: floor %v, warnings %q, want a floor: %t", age, m.Floor, m.Warnings, want)
		}
	}
}

// What studies compare first is calibrated, if it can be: a metric that may be
// zero has no floor as a ratio, and one of generators takes generators.
func TestCalibrationHoldsPrimaries(t *testing.T) {
	null, err := studies.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	loops := false
	for _, w := range null.Workloads {
		loops = loops || w.Loop > 0
	}
	all, err := studies.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		switch m := s.Primary.Metric; {
		case s.Kind == study.Generators, m == "cpu_per_request", m == "goroutine_growth":
		case m == "loop_time" && loops:
		default:
			t.Errorf("study %s compares %s, which study null does not measure", s.Name, m)
		}
	}
}
