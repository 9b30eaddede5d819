package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// generate is a load generator: MODE URL CONNECTIONS RATE SECONDS, rate 0 for
// the closed loop. It prints what it saw.
func generate(args []string) {
	number := func(i int) float64 {
		f, err := strconv.ParseFloat(args[i], 64)
		if err != nil {
			panic(err)
		}
		return f
	}
	if args[0] == "mute" {
		fmt.Println("all done")
		return
	}
	o := load.Options{
		Targets: []load.Target{{URL: args[1]}}, Connections: int(number(2)), Duration: time.Duration(number(4) * float64(time.Second)),
	}
	if rate := number(3); rate > 0 {
		o.Schedule = pace.Constant(rate)
	}
	if args[0] == "tells" && o.Schedule != nil {
		o.Connections = 0 // as many as it takes
	}
	res, err := load.Run(context.Background(), o)
	if err != nil {
		panic(err)
	}
	times := res.Response
	if args[0] == "omits" { // the wait before the start, as a closed loop does
		times = res.Service
		fmt.Fprintln(os.Stderr, "an expected complaint")
		defer os.Exit(5)
	}
	fmt.Printf("requests %d\n", res.Counts.Answered())
	for name, q := range map[string]float64{"p50": .5, "p90": .9, "p99": .99, "max": 1} {
		fmt.Printf("%s %v\n", name, time.Duration(times.Quantile(q)))
	}
}

// generators is a study of this program as a load generator in two modes,
// against arms/truth with these arguments.
func generators(t *testing.T, w study.Workload, truth ...string) *study.Study {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.Name = "load"
	w.Targets = []study.Target{{Path: "/", Verify: study.Verify{Contains: "ok"}}}
	w.Server = &study.Arm{Name: "truth", Go: "./arms/truth", Args: append(truth, "--log", "requests.csv")}
	s := &study.Study{
		Name: "generators", Kind: study.Generators, Control: "tells", Workloads: []study.Workload{w},
		Primary: study.Primary{Metric: "generator_cpu_per_request", Workload: "load"},
		Trial:   study.Trial{Measure: 2 * time.Second},
	}
	for _, mode := range []string{"tells", "omits"} {
		call := []string{"${TARE_URL}", "${TARE_CONNECTIONS}", "${TARE_RATE}", "${TARE_SECONDS}"}
		s.Arms = append(s.Arms, study.Arm{
			Name: mode, Command: []string{exe, mode},
			Generator: study.Generator{Closed: call, Open: call, Under: []string{"env", "LAB_TEST_GENERATOR=1"}, Reports: study.Reports{
				Requests: `requests (\d+)`, P50: `p50 (\S+)`, P90: `p90 (\S+)`, P99: `p99 (\S+)`, P999: `p999 (\S+)`, Max: `max (\S+)`,
			}},
		})
	}
	return s
}

func generatorOptions(t *testing.T, s *study.Study) lab.Options {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build the server with")
	}
	o := options(t, s)
	o.Builder, o.Blocks = moduleArms(), 1
	return o
}

// TestGeneratorsCount holds the count of a closed loop against the server's.
func TestGeneratorsCount(t *testing.T) {
	run, err := lab.Run(t.Context(), generatorOptions(t, generators(t, study.Workload{Schedule: "closed", Connections: 8}, "--work", "0s")))
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Trials) != 2 || run.Manifest.Programs["server of load"].BuildID == "" {
		t.Errorf("%d trials, programs %v; want 2, the server among the programs", len(run.Trials), run.Manifest.Programs)
	}
	for _, tr := range run.Trials {
		if len(tr.Invalid) > 0 || tr.Requests == 0 {
			t.Fatalf("trial of %s: %d requests, invalid: %q", tr.Arm, tr.Requests, tr.Invalid)
		}
		if off, ok := tr.Metrics["count_error"]; !ok || off != 0 {
			t.Errorf("%s: counted %d requests, %v more or fewer than the server (%t)", tr.Arm, tr.Requests, off, ok)
		}
		for _, metric := range []string{"generator_cpu_per_request", "generator_cpu", "throughput", "response_p50", "response_max"} {
			if tr.Metrics[metric] <= 0 {
				t.Errorf("%s: %s = %v", tr.Arm, metric, tr.Metrics[metric])
			}
		}
		for metric := range tr.Metrics {
			if strings.HasSuffix(metric, "_error") && metric != "count_error" {
				t.Errorf("%s: %s, although a closed loop has no intended starts", tr.Arm, metric)
			}
		}
		if said := strings.Join(tr.Warnings, "; "); strings.Contains(said, "an expected complaint") != (tr.Arm == "omits") || !strings.Contains(said, "response_p999") {
			t.Errorf("%s: warnings %q, want what it ended with and that it reports no p99.9", tr.Arm, said)
		}
	}
}

// TestGeneratorsTruth holds response times through a stall against the server's
// log: those from the intended start are near it, those of a generator that
// leaves out the wait are not. Only quantiles within the stall are compared: they
// are hundreds of milliseconds, beyond what a busy machine adds to either side.
func TestGeneratorsTruth(t *testing.T) {
	w := study.Workload{Schedule: "constant", Rate: study.Rate{PerSecond: 500}, Connections: 4}
	run, err := lab.Run(t.Context(), generatorOptions(t, generators(t, w, "--stall", "500ms", "--every", "1500ms")))
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range run.Trials {
		if len(tr.Invalid) > 0 {
			t.Fatalf("trial of %s is invalid: %q", tr.Arm, tr.Invalid)
		}
		if tr.Requests != 1000 || tr.Metrics["count_error"] != 0 {
			t.Errorf("%s: %d requests, %v more or fewer than the server; want 1000 and none", tr.Arm, tr.Requests, tr.Metrics["count_error"])
		}
		for _, q := range []string{"p90", "p99", "max"} {
			off, ok := tr.Metrics[q+"_error"]
			if !ok || tr.Arm == "tells" && off > 0.25 || tr.Arm == "omits" && q != "max" && off < 0.5 { // few met the stall itself
				t.Errorf("%s: %s is %v, off the truth by %v (%t); want at most 0.25 where the wait is told, else 0.5 or more",
					tr.Arm, q, time.Duration(tr.Metrics["response_"+q]), off, ok)
			}
		}
		if tr.Arm == "tells" && tr.Metrics["response_p99"] < 300e6 {
			t.Errorf("the stall of 500 ms is not in the p99 of %v", time.Duration(tr.Metrics["response_p99"]))
		}
	}
}

// TestGeneratorsLogLate has a server take its time to write its log: it is waited for,
// and what one that never ends may not have written is not taken for the whole.
func TestGeneratorsLogLate(t *testing.T) {
	for mode, want := range map[string]string{"logs late": "", "logs never": "the server did not end within 5s of being asked to"} {
		s := generators(t, study.Workload{Schedule: "constant", Rate: study.Rate{PerSecond: 50}, Connections: 1})
		server := testArm(t, "server", mode)
		s.Workloads[0].Server, s.Trial.Measure = &server, time.Second
		run, err := lab.Run(t.Context(), generatorOptions(t, s))
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want it to say %q", mode, err, want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		for _, tr := range run.Trials {
			if off, ok := tr.Metrics["count_error"]; !ok || off != 0 || len(tr.Invalid) > 0 {
				t.Errorf("%s: %s counted %d requests, %v more or fewer than the server (%t), invalid: %q", mode, tr.Arm, tr.Requests, off, ok, tr.Invalid)
			}
		}
	}
}

// A server that does not come back ends the run, as an arm that does not: to wait for
// it in every trial would take hours.
func TestGeneratorsServerDoesNotComeBack(t *testing.T) {
	s := generators(t, study.Workload{Schedule: "closed", Connections: 1})
	s.Arms, s.Twin = s.Arms[:1], true // one pilot
	server := testArm(t, "server", "gone:"+filepath.Join(t.TempDir(), "mark"))
	s.Workloads[0].Server, s.Workloads[0].Targets[0].Verify.Contains = &server, "hello"
	o := generatorOptions(t, s)
	o.Blocks = 30
	run, err := lab.Run(t.Context(), o)
	if !errors.Is(err, lab.ErrArm) || !strings.Contains(err.Error(), "not ready for 3 trials in a row: waiting for the server") || !strings.Contains(err.Error(), "served once") {
		t.Errorf("got the error %v", err)
	}
	if run == nil || len(run.Trials) != 2 {
		t.Errorf("got the run %+v, want one with the two trials before the last", run)
	}
}

func TestGeneratorThatSaysNothing(t *testing.T) {
	s := generators(t, study.Workload{Schedule: "closed", Connections: 1})
	s.Arms[1].Command[1] = "mute"
	_, err := lab.Run(t.Context(), generatorOptions(t, s))
	for _, want := range []string{"arm omits under workload load", `"requests (\\d+)" matches nothing`, `all done`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %s", err, want)
		}
	}
}
