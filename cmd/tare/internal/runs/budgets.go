package runs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/internal/shape"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats/bound"
	"github.com/tarehq/tare/stats/unit"
)

// Budgets are the largest harms, relative, by metric.
type Budgets map[string]float64

// Decode reads one, as metric<=5%. The older metric=5, in per cent, means the same.
func (b *Budgets) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("budget", &text); err != nil {
		return err
	}
	if metric, harm, old := strings.Cut(text, "="); old && !strings.ContainsAny(text, "<>") {
		text = metric + "<=" + strings.TrimSuffix(harm, "%") + "%"
	}
	c, err := bound.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%w; a budget is one such as cpu_per_request<=5%%", err)
	case c.Op != bound.AtMost:
		return fmt.Errorf("%q: a budget is the largest harm that is allowed, so it takes <=, such as cpu_per_request<=5%%", text)
	case c.Unit != unit.Share:
		return fmt.Errorf("%q: a budget is relative to the control, so it is in per cent, such as cpu_per_request<=5%%", text)
	}
	if _, ok := (*b)[c.Measure]; ok {
		return fmt.Errorf("%s has a budget already: name one for each metric", c.Measure)
	}
	if *b == nil {
		*b = Budgets{}
	}
	(*b)[c.Measure] = c.Value
	return nil
}

// Flags are the budgets as they are asked for on a command line.
func (b Budgets) Flags() []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		const digits = 15 // beyond, 100 times a share is not the number that was written
		percent, _ := strconv.ParseFloat(strconv.FormatFloat(100*b[name], 'g', digits, 64), 64)
		args = append(args, "--max", name+"="+strconv.FormatFloat(percent, 'f', -1, 64))
	}
	return args
}

// List returns the budgets by metric. It refuses metrics that do not exist, and budgets
// that nothing exceeds.
func (b Budgets) List() ([]verdict.Budget, error) {
	var all []verdict.Budget
	for _, name := range slices.Sorted(maps.Keys(b)) {
		m, ok := study.MetricNamed(name)
		if !ok {
			return nil, UnknownMetric("--max", name)
		}
		if m.Higher && b[name] >= 1 {
			return nil, cli.Usage("", fmt.Errorf("--max %s: more is better of it, so a budget is below 100 %%", name))
		}
		all = append(all, verdict.Budget{Metric: name, Harm: b[name]})
	}
	return all, nil
}

// UnknownMetric is the mistake of a flag that names a metric which does not exist.
func UnknownMetric(flag, name string) error {
	var known []string
	for _, m := range study.Metrics() {
		known = append(known, m.Name)
	}
	meant := shape.Meant(name, known)
	if full := "response_" + name; slices.Contains(known, full) { // as --fail-if of tare load has it
		meant = "did you mean " + full + "? "
	}
	return cli.Usage(meant+"`tare help study-files` lists the metrics", fmt.Errorf("%s: no metric is called %q", flag, name))
}
