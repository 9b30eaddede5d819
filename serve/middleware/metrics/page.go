package metrics

import (
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Sample is one number of the page.
type Sample struct {
	Name   string
	Labels []Label // those of the service first; no name is there twice
	Value  float64
}

// Label is a part of what tells samples of one name apart.
type Label struct{ Name, Value string }

// Kinds of families.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// page is what is exposed at one time.
type page struct {
	constant []Label // of all samples
	families []*family
}

// family is the samples of one name.
type family struct {
	name, kind, help string
	samples          []sample
	whole            []*whole // if they are histograms: what the samples are made of
}

// whole is a histogram.
type whole struct {
	labels []Label
	bounds []float64
	r      *reading
}

// sample is one of a family's.
type sample struct {
	suffix   string // of the family's name
	labels   []Label
	value    float64
	exemplar *exemplar // nil: none
	lone     bool      // a count without a sum, which OpenMetrics does not have
}

// family begins the samples of one name.
func (p *page) family(name, kind, help string) *family {
	f := &family{name: name, kind: kind, help: help}
	p.families = append(p.families, f)
	return f
}

// add adds one.
func (f *family) add(suffix string, labels []Label, value float64) {
	f.samples = append(f.samples, sample{suffix: suffix, labels: labels, value: value})
}

// histogram adds the samples of one, whose counts are one more than bounds.
func (f *family) histogram(labels []Label, bounds []float64, r *reading) {
	labels = slices.Clip(labels)
	f.whole = append(f.whole, &whole{labels, bounds, r})
	total := uint64(0)
	for i, n := range r.counts {
		bound := math.Inf(1)
		if i < len(bounds) {
			bound = bounds[i]
		}
		total += n
		s := sample{suffix: "_bucket", labels: append(labels, Label{"le", format(bound)}), value: float64(total)}
		if len(r.exemplars) > 0 {
			s.exemplar = r.exemplars[i]
		}
		f.samples = append(f.samples, s)
	}
	f.samples = append(f.samples, sample{suffix: "_count", labels: labels, value: float64(total), lone: math.IsNaN(r.sum)})
	if !math.IsNaN(r.sum) {
		f.add("_sum", labels, r.sum)
	}
}

// samples returns what the page has as numbers.
func (p *page) samples() []Sample {
	var all []Sample
	for _, f := range p.families {
		for _, s := range f.samples {
			all = append(all, Sample{f.name + s.suffix, slices.Concat(p.constant, s.labels), s.value})
		}
	}
	return all
}

// text returns the page in Prometheus' format or in OpenMetrics.
func (p *page) text(open bool) []byte {
	var b []byte
	for _, f := range p.families {
		name, help := f.name, strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(f.help)
		if open { // whose families of counters have the name without the suffix, and whose helps escape quotes
			name, help = strings.TrimSuffix(name, "_total"), escape(f.help)
		}
		b = append(b, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+f.kind+"\n"...)
		for _, s := range f.samples {
			if open && s.lone {
				continue
			}
			b = append(append(b, f.name...), s.suffix...)
			b = appendLabels(b, p.constant, s.labels)
			b = append(append(b, ' '), format(s.value)...)
			if open && s.exemplar != nil {
				b = s.exemplar.append(b)
			}
			b = append(b, '\n')
		}
	}
	if open {
		b = append(b, "# EOF\n"...)
	}
	return b
}

func appendLabels(b []byte, sets ...[]Label) []byte {
	separator := byte('{')
	for _, set := range sets {
		for _, l := range set {
			b = append(append(b, separator), l.Name...)
			b = append(append(append(b, `="`...), escape(l.Value)...), '"')
			separator = ','
		}
	}
	if separator == ',' {
		b = append(b, '}')
	}
	return b
}

// append writes the exemplar behind its bucket.
func (e *exemplar) append(b []byte) []byte {
	b = appendLabels(append(b, " # "...), []Label{{"trace_id", e.trace}})
	b = append(append(b, ' '), format(e.seconds)...)
	return strconv.AppendFloat(append(b, ' '), float64(e.at.UnixMilli())/1e3, 'f', 3, 64)
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

const openMetrics = "application/openmetrics-text"

// accepts reports whether a client reads a format.
func accepts(h http.Header, format string) bool {
	for _, line := range h["Accept"] {
		for kind := range strings.SplitSeq(line, ",") {
			name, parameters, err := mime.ParseMediaType(kind)
			if err != nil || name != format || format == protobuf && parameters["encoding"] != "delimited" {
				continue
			}
			q, err := strconv.ParseFloat(parameters["q"], 64)
			if err != nil || q > 0 {
				return true
			}
		}
	}
	return false
}
