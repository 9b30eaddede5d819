package report_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/report"
)

// benchLine is a line of the Go benchmark format, read back.
type benchLine struct {
	name   string
	n      uint64
	values map[string]float64
}

// readBench reads the format strictly, as far as Bench uses it.
func readBench(text string) (config map[string]string, lines []benchLine, err error) {
	config = map[string]string{}
	key := regexp.MustCompile(`^[a-z][^ A-Z]*$`)
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fields := strings.Fields(line)
		switch k, v, isConfig := strings.Cut(line, ": "); {
		case strings.HasPrefix(line, "Unit "):
			if len(fields) != 3 || !strings.HasPrefix(fields[2], "better=") {
				return nil, nil, fmt.Errorf("line %d: unit %q", i+1, line)
			}
		case isConfig && key.MatchString(k):
			config[k] = v
		case strings.HasPrefix(line, "Benchmark"):
			b := benchLine{name: fields[0], values: map[string]float64{}}
			if b.n, err = strconv.ParseUint(fields[1], 10, 64); err != nil || len(fields)%2 != 0 {
				return nil, nil, fmt.Errorf("line %d: %q", i+1, line)
			}
			for j := 2; j < len(fields); j += 2 {
				v, err := strconv.ParseFloat(fields[j], 64)
				if _, twice := b.values[fields[j+1]]; err != nil || twice {
					return nil, nil, fmt.Errorf("line %d: value %q of %q", i+1, fields[j], fields[j+1])
				}
				b.values[fields[j+1]] = v
			}
			lines = append(lines, b)
		default:
			return nil, nil, fmt.Errorf("line %d is nothing of the format: %q", i+1, line)
		}
	}
	return config, lines, nil
}

func TestBench(t *testing.T) {
	r := synthetic(1)
	pilot := r.Trials[0]
	pilot.Block, pilot.Seq = -1, 80
	r.Trials = append(r.Trials, pilot)
	var b strings.Builder
	if err := report.Bench(&b, r); err != nil {
		t.Fatal(err)
	}
	config, lines, err := readBench(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if config["study"] != "nesting" || config["seed"] != "1" || config["control"] != "none" {
		t.Errorf("config: got %v", config)
	}
	if len(lines) != 79 {
		t.Errorf("got %d lines, want one for each of the 79 valid trials", len(lines))
	}
	at := func(tr record.Trial) benchLine {
		name := fmt.Sprintf("BenchmarkStudy/workload=%s/arm=%s", tr.Workload, tr.Arm)
		if tr.Twin {
			name += "/twin=yes"
		}
		name += "-1" // CPU of the arm's
		for _, l := range lines {
			if l.name == name && math.Float64bits(l.values["cpu-ns/op"]) == math.Float64bits(tr.Metrics["cpu_per_request"]) {
				return l
			}
		}
		t.Fatalf("no line %s with the trial's values", name)
		return benchLine{}
	}
	for _, tr := range r.Trials[:79] {
		l := at(tr)
		if l.n != tr.Requests || len(l.values) != len(tr.Metrics) || l.values["req/s"] != tr.Metrics["throughput"] {
			t.Errorf("trial %d: got %+v, want %v", tr.Seq, l, tr.Metrics)
		}
	}
	head, _, _ := strings.Cut(b.String(), "BenchmarkStudy") // what follows was compared in full
	golden(t, "bench.txt", head)
}

func TestBenchNames(t *testing.T) {
	r := synthetic(1)
	r.Trials = r.Trials[:1]
	r.Trials[0].Arm, r.Trials[0].Workload = "my arm/v2\n", "a b"
	var b strings.Builder
	if err := report.Bench(&b, r); err != nil {
		t.Fatal(err)
	}
	if _, lines, err := readBench(b.String()); err != nil || lines[0].name != "BenchmarkStudy/workload=a_b/arm=my_arm_v2-1" {
		t.Errorf("got %v, %v", lines, err)
	}
}

// Readers of the format take a number at the end of a name for GOMAXPROCS: it must not
// be that of an arm, or depth-5 and depth-50 are one arm to benchstat -col /arm.
func TestBenchNamesEndInCPUs(t *testing.T) {
	ending := regexp.MustCompile(`-[0-9]+$`)
	r := synthetic(1)
	r.Manifest.Pinning.Specimen = []int{0, 1}
	r.Trials = r.Trials[:2]
	r.Trials[0].Arm, r.Trials[1].Arm, r.Trials[1].Twin = "depth-5", "depth-50", false
	var b strings.Builder
	if err := report.Bench(&b, r); err != nil {
		t.Fatal(err)
	}
	_, lines, err := readBench(b.String())
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %v, %v", lines, err)
	}
	for i, want := range []string{"depth-5", "depth-50"} {
		name := lines[i].name
		if cpus := ending.FindString(name); cpus != "-2" || !strings.HasSuffix(strings.TrimSuffix(name, cpus), "/arm="+want) {
			t.Errorf("got %s, which is read as %s on %q CPUs, want arm=%s on -2", name, ending.ReplaceAllString(name, ""), cpus, want)
		}
	}
}
