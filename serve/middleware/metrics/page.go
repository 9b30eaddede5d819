package metrics

import (
	"math"
	"strconv"
	"strings"
)

// page is a text in Prometheus' format.
type page struct{ text []byte }

// family begins the samples of one name.
func (p *page) family(name, kind, help string) {
	help = strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(help)
	p.text = append(p.text, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

// sample adds one. Labels are as they are written, without braces.
func (p *page) sample(name, labels string, value float64) {
	p.text = append(p.text, name...)
	if labels != "" {
		p.text = append(p.text, '{')
		p.text = append(p.text, labels...)
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, ' ')
	p.text = append(p.text, format(value)...)
	p.text = append(p.text, '\n')
}

// histogram adds the buckets and the count of one; counts has one more than bounds.
func (p *page) histogram(name, labels string, bounds []float64, counts []uint64) {
	comma := ""
	if labels != "" {
		comma = ","
	}
	total := uint64(0)
	for i, n := range counts {
		bound := math.Inf(1)
		if i < len(bounds) {
			bound = bounds[i]
		}
		total += n
		p.sample(name+"_bucket", labels+comma+`le="`+format(bound)+`"`, float64(total))
	}
	p.sample(name+"_count", labels, float64(total))
}

// format writes a number as Prometheus reads it.
func format(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// escape writes the value of a label.
func escape(v string) string {
	return strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(v, "\ufffd"))
}
