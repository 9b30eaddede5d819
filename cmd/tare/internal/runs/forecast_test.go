package runs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
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
			(&Session{StudyFlags: StudyFlags{Blocks: tt.blocks}, Budget: tt.budget}).announceBudget(&cli.Terminal{Err: &said}, s)
			if got := said.String(); !strings.Contains(got, tt.want) || strings.Contains(got, tt.never) {
				t.Errorf("--budget %s %s: got %q, want %q in it and no %q", tt.budget, tt.study, got, tt.want, tt.never)
			}
		})
	}
}

// Without a calibration the noise of a run with the same control is taken, if it is not old.
func TestAnnounceByKeptRun(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	home := t.TempDir()
	s := study.Study{Name: "ab", Control: "a", Twin: true, Threshold: 0.01, Arms: []study.Arm{{Name: "a"}, {Name: "b"}},
		Workloads: []study.Workload{{Name: "load", Schedule: "closed"}}, Primary: study.Primary{Metric: "cpu_per_request", Workload: "load"}}
	keep := func(id string, age time.Duration, blocks int) {
		w, err := record.Create(filepath.Join(home, id), record.Manifest{ID: id, Study: s, Started: time.Now().Add(-age), Outcome: "cap"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 * blocks { // control, twin and arm
			tr := record.Trial{Seq: i, Block: i / 3, Arm: "a", Twin: i%3 == 1, Workload: "load", Requests: 20_000, Elapsed: time.Second, Steady: true,
				Metrics: map[string]float64{"cpu_per_request": 30_000 + float64(300*(i%5))}}
			if i%3 == 2 {
				tr.Arm = "b"
			}
			err = errors.Join(err, w.Append(tr, nil))
		}
		if err := errors.Join(err, w.Finish("cap")); err != nil {
			t.Fatal(err)
		}
	}
	other := s
	other.Control = "b"
	keep("old", 2*noise.FloorAge, 8)
	for _, tt := range []struct {
		study *study.Study
		keep  string
		short int // newer runs that have no floor
		want  string
	}{{&s, "", 0, "run `tare calibrate` once"}, {&s, "new", mostFloors - 1, ", by the noise of run new\n"}, {&other, "", 0, "run `tare calibrate` once"},
		{&s, "", mostFloors, "run `tare calibrate` once"}} {
		if tt.keep != "" {
			keep(tt.keep, time.Hour, 8)
		}
		for i := range tt.short {
			keep(fmt.Sprintf("short-%d-%d", tt.short, i), time.Minute, 1)
		}
		var said strings.Builder
		AnnounceEffect(&cli.Terminal{Err: &said}, tt.study, 8, home)
		if !strings.Contains(said.String(), tt.want) {
			t.Errorf("with %q kept, against %s: got %q, want %q", tt.keep, tt.study.Control, said.String(), tt.want)
		}
	}
}

// TestCheckBudget holds that a budget in which nothing could be decided is refused with what would
// do, and that none is where the least number of blocks might fit.
func TestCheckBudget(t *testing.T) {
	for _, tt := range []struct {
		study  string
		quick  bool
		budget time.Duration
		blocks int
		want   string // "": not refused
	}{
		{"frameworks", false, 3 * time.Minute, 0, "try --budget 36m0s, or --quick (about 2m39s at most), or --arms with fewer arms"},
		{"frameworks", false, 22 * time.Minute, 0, ""}, // for fewer blocks than tell all arms apart
		{"frameworks", false, 3 * time.Minute, 1, ""},  // whose number is the user's own
		{"frameworks", false, 0, 0, ""},
		{"nesting", true, 10 * time.Second, 0, "try --budget "},
	} {
		st, err := studies.Named(tt.study)
		if err != nil {
			t.Fatal(err)
		}
		if tt.quick {
			st = st.QuickForm()
		}
		s := &Session{StudyFlags: StudyFlags{Quick: tt.quick, Blocks: tt.blocks}, Budget: tt.budget}
		err = s.CheckBudget(st)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, --budget %s --blocks %d: got %v, want %q", tt.study, tt.budget, tt.blocks, err, tt.want)
		}
		if tt.quick && strings.Contains(err.Error(), "--quick") {
			t.Errorf("the short form is told to try itself: %v", err)
		}
	}
}

// TestPlannedKeepsToTheBudget holds that a plan has as many blocks, and takes as long, as the
// budget allows.
func TestPlannedKeepsToTheBudget(t *testing.T) {
	st, err := studies.Named("frameworks")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		budget time.Duration
		blocks int // --blocks
		want   int
	}{{0, 0, 30}, {0, 5, 5}, {time.Second, 0, 1}, {40 * time.Minute, 0, 13}, {40 * time.Minute, 12, 12}} {
		s := &Session{StudyFlags: StudyFlags{Blocks: tt.blocks}, Budget: tt.budget}
		if got, took := s.Planned(st); got != tt.want || tt.budget > 0 && took > tt.budget {
			t.Errorf("--budget %s --blocks %d: got %d blocks in %s, want %d", tt.budget, tt.blocks, got, took, tt.want)
		}
	}
}

// TestLeastBlocks holds that a look is taken early at its own level: what the first one is too
// short for is held against the next.
func TestLeastBlocks(t *testing.T) {
	st, err := studies.Named("frameworks")
	if err != nil {
		t.Fatal(err)
	}
	looks := []stats.Look{{Blocks: 8, Alpha: 0.01}, {Blocks: 12, Alpha: 0.01}, {Blocks: 18, Alpha: 0.012}}
	if got := leastBlocks(st, looks); got != stats.BlocksForFamily(family(st), 0.01) || got <= 8 || got > 12 {
		t.Errorf("%d blocks, want those of the look at 12", got)
	}
	looks[1].Alpha = 1e-9
	if got := leastBlocks(st, looks); got != 13 {
		t.Errorf("%d blocks where the look at 12 decides nothing, want the first ones beyond it", got)
	}
}
