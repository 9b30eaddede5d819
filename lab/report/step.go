package report

import (
	"strings"

	"github.com/tarehq/tare/lab/verdict"
)

// stepMetrics are the metrics of which a step of the study's scale has a price,
// in process and under load.
var stepMetrics = [...]struct{ where, metric, word string }{
	{"in process", "loop_time", ""},
	{"in process", "loop_bytes", ""},
	{"in process", "loop_allocs", " allocations"},
	{"under load", "cpu_per_request", " of CPU"},
	{"under load", "alloc_bytes", ""},
	{"under load", "alloc_objects", " allocations"},
}

// stepCosts say what a step of the study's scale, such as a layer, costs a request:
// a line in process and one under load, then what is to be known of the figures.
// There are none without a scale.
func stepCosts(w *verdict.Workload) []string {
	var lines, cautions []string
	var last string
	concerned := map[string][]string{} // metrics by caution
	for _, c := range stepMetrics {
		m := w.Metric(c.metric)
		if m == nil || m.Withheld != "" || m.Slope == nil || m.Slope.N == 0 {
			continue
		}
		s := m.Slope
		head := "a step " + c.where + " (" + strings.Join(s.Arms, ", ") + "; " + verdict.Confidence(s.Alpha) + " intervals): "
		figure := verdict.ShowSigned(m.Metric, s.Slope) + c.word + " (" + verdict.SpanSigned(m.Metric, s.Interval) + ")"
		if head == last {
			lines[len(lines)-1] += ", " + figure
		} else {
			lines, last = append(lines, head+figure), head
		}
		for _, text := range messages(s.Warnings) {
			if concerned[text] == nil {
				cautions = append(cautions, text)
			}
			concerned[text] = append(concerned[text], m.Name)
		}
	}
	for _, text := range cautions {
		lines = append(lines, strings.Join(concerned[text], ", ")+": "+text)
	}
	return lines
}
