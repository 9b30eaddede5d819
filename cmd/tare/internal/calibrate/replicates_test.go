package calibrate

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/studies"
)

// A calibration runs as many blocks as are asked for: no look before the last may
// decide anything, also where there is something to decide.
func TestCalibrationRunsAllBlocks(t *testing.T) {
	null, err := studies.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*study.Study{calibrating(null, 72), fourfold(calibrating(null, 72))} {
		if looks := lab.Looks(s, 72); len(looks) != 1 || looks[0].Blocks != 72 {
			t.Errorf("%d arms: looks at %v, want one, at 72 blocks", len(s.Arms), looks)
		}
	}
	if len(null.Looks) > 0 {
		t.Errorf("study null itself now looks at %v", null.Looks)
	}
}

func TestReplicates(t *testing.T) {
	null, err := studies.Named("null")
	if err != nil {
		t.Fatal(err)
	}
	s := fourfold(null)
	if n := s.CellsPerBlock(); n != replicas*len(s.Workloads) || !s.AA || len(null.Arms) != 1 {
		t.Fatalf("a block has %d trials of %d workloads, A/A %v, and null %d arms, want %d a workload, true and 1",
			n, len(s.Workloads), s.AA, len(null.Arms), replicas)
	}
	run := &record.Run{Manifest: record.Manifest{ID: "null", Study: *s, Seed: 7}}
	for i, c := range study.NewPlan(s, 7, 8) {
		tr := record.Trial{Seq: i, Block: c.Block, Arm: c.Arm, Twin: c.Twin, Workload: c.Workload, Steady: true,
			Metrics: map[string]float64{"cpu_per_request": float64(1000 + i), "errors": 0, "lag_p99": 5}}
		if c.Block == 3 && c.Twin {
			tr.Invalid = []string{"the arm died under load"}
		}
		run.Trials = append(run.Trials, tr)
	}
	want := [][]float64{}
	for b := range 8 {
		var row []float64
		for _, tr := range run.Trials {
			if tr.Block == b && tr.Workload == s.Primary.Workload {
				row = append(row, tr.Metrics["cpu_per_request"])
			}
		}
		if b != 3 {
			want = append(want, row)
		}
	}
	a, err := verdict.Analyse(run)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "aa.json")
	if err := (&Cmd{Replicates: path}).keepReplicates(run, a); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rep, err := stats.ReadReplicates(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := rep.Metrics["cpu_per_request"]; len(rep.Metrics) != 1 || !reflect.DeepEqual(got, want) {
		t.Errorf("kept %v, want CPU per request alone: %v", rep.Metrics, want)
	}
	run.Trials = run.Trials[:3]
	if err := (&Cmd{Replicates: path}).keepReplicates(run, a); err == nil {
		t.Error("no block is whole: no error, want one")
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
