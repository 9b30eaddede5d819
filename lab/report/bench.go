package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats/unit"
)

// Bench writes the run's valid trials in the Go benchmark text format, a line
// each, for benchstat and the like:
//
//	BenchmarkStudy/workload=half/arm=three-1 24600 30932 cpu-ns/op 12300 req/s …
//
// The number that ends a name is that of the arm's CPUs, as go test has it: readers
// take it off, and would take the 50 of an arm depth-50 instead. The iterations are
// the trial's requests. ns/op, B/op and allocs/op are those
// of the in-process loop, as in a benchmark; all other units are the metrics'
// names with dashes, followed by ns, B or share. The control's second trials
// have twin=yes in their names. Note that benchstat compares the samples of
// two arms as independent, not block by block: on a machine that drifts its
// intervals are wider than those of [Text].
func Bench(w io.Writer, run *record.Run) error {
	out := bufio.NewWriter(w)
	m := &run.Manifest
	for _, line := range [][2]string{
		{"study", m.Study.Name}, {"run", m.ID}, {"control", m.Study.Control}, {"seed", strconv.FormatUint(m.Seed, 10)}, {"tare", m.Tare},
	} {
		if line[1] != "" {
			fmt.Fprintf(out, "%s: %s\n", line[0], doc.Printable(strings.Join(strings.Fields(line[1]), " ")))
		}
	}
	measured := measuredIn(run)
	for _, metric := range measured {
		better := "lower"
		if metric.Higher {
			better = "higher"
		}
		fmt.Fprintf(out, "Unit %s better=%s\n", benchUnit(metric), better)
	}
	for _, t := range run.Trials {
		if len(t.Invalid) == 0 && t.Block >= 0 {
			writeBenchLine(out, &t, measured, max(1, len(m.Pinning.Specimen)))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing benchmark text: %w", err)
	}
	return nil
}

func writeBenchLine(out *bufio.Writer, t *record.Trial, measured []study.Metric, cpus int) {
	fmt.Fprintf(out, "BenchmarkStudy/workload=%s/arm=%s", benchName(t.Workload), benchName(t.Arm))
	if t.Twin {
		out.WriteString("/twin=yes")
	}
	fmt.Fprintf(out, "-%d %d", cpus, t.Requests)
	for _, m := range measured {
		if v, ok := t.Metrics[m.Name]; ok {
			fmt.Fprintf(out, " %s %s", strconv.FormatFloat(v, 'f', -1, 64), benchUnit(m))
		}
	}
	out.WriteByte('\n')
}

// measuredIn are the metrics that some valid trial has.
func measuredIn(run *record.Run) []study.Metric {
	var all []study.Metric
	for _, m := range run.Manifest.Study.Metrics() {
		for _, t := range run.Trials {
			if _, ok := t.Metrics[m.Name]; ok && len(t.Invalid) == 0 && t.Block >= 0 {
				all = append(all, m)
				break
			}
		}
	}
	return all
}

// benchName makes a name of the user's fit a benchmark's: no spaces, no
// slashes, which would begin another key, nothing that steers a terminal.
func benchName(s string) string {
	return strings.Join(strings.FieldsFunc(doc.Printable(s), func(r rune) bool { return r == ' ' || r == '/' || r == '\t' || r == '\n' }), "_")
}

func benchUnit(m study.Metric) string {
	switch m.Name {
	case "throughput":
		return "req/s"
	case "cpu_per_request":
		return "cpu-ns/op"
	case "loop_time":
		return "ns/op"
	case "loop_bytes":
		return "B/op"
	case "loop_allocs":
		return "allocs/op"
	}
	name := strings.ReplaceAll(m.Name, "_", "-")
	switch m.Unit {
	case unit.Nanoseconds:
		return name + "-ns"
	case unit.Bytes:
		return strings.TrimSuffix(name, "-bytes") + "-B"
	case unit.Share:
		return name + "-share"
	}
	return name
}
