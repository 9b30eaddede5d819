package load

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// resultSchema is the version of the shape that MarshalJSON writes. It grows
// when a key changes its meaning or goes; new keys leave it as it is.
const resultSchema = 1

// Warnings are caveats. In JSON they are their texts.
type Warnings []error

// MarshalJSON gives the texts, an empty list for none.
func (w Warnings) MarshalJSON() ([]byte, error) {
	texts := make([]string, len(w))
	for i, err := range w {
		texts[i] = err.Error()
	}
	return json.Marshal(texts)
}

// MarshalJSON names the classes from "1xx" to "5xx".
func (c Classes) MarshalJSON() ([]byte, error) {
	named := map[string]uint64{}
	for class := 1; class < len(c); class++ {
		named[fmt.Sprintf("%dxx", class)] = c[class]
	}
	return json.Marshal(named)
}

// MarshalJSON adds the number of answers.
func (c Counts) MarshalJSON() ([]byte, error) {
	type fields Counts
	return json.Marshal(struct {
		Scheduled uint64 `json:"scheduled"`
		Answered  uint64 `json:"answered"`
		fields
	}{c.Scheduled, c.Answered(), fields(c)})
}

// MarshalJSON gives r in a shape that later versions keep: the keys are stable,
// new ones may come, "schema" grows when one changes its meaning. Times are in
// nanoseconds, rates in answers a second. Times are tables of quantiles, absent when
// nothing was recorded: see [hist.Hist.MarshalJSON]. A slice's are of what it has.
func (r *Result) MarshalJSON() ([]byte, error) {
	type fields Result
	v := struct {
		Schema  int           `json:"schema"`
		Started time.Time     `json:"started"` // this and those up to the rate hide r's own, which follow
		Elapsed time.Duration `json:"elapsed_ns"`
		Ended   string        `json:"ended"`
		Engine  Engine        `json:"engine"`
		Threads int           `json:"threads"`
		Rate    float64       `json:"rate"`
		*fields
		Series   []Slice  `json:"series"`
		Warnings Warnings `json:"warnings"`
	}{resultSchema, r.Started, r.Elapsed, r.Ended, r.Engine, r.Threads, answerRate(r), (*fields)(r),
		append([]Slice{}, r.Series...), r.Warnings}
	return json.Marshal(v)
}

// WriteSeries writes r.Series as CSV with a header row, times in nanoseconds.
func (r *Result) WriteSeries(w io.Writer) error {
	cw := csv.NewWriter(w)
	cw.Write([]string{"at_ns", "answered", "failed", "dropped", "bytes_in", "p50_ns", "p99_ns", "max_ns"})
	for _, s := range r.Series {
		row := make([]string, 0, 8)
		for _, v := range []uint64{uint64(s.At), s.Answered, s.Failed, s.Dropped, s.BytesIn, uint64(s.P50), uint64(s.P99), uint64(s.Max)} {
			row = append(row, strconv.FormatUint(v, 10))
		}
		cw.Write(row)
	}
	cw.Flush()
	if err := cw.Error(); err != nil {
		return fmt.Errorf("writing series: %w", err)
	}
	return nil
}

// MarshalJSON gives s in a shape that later versions keep, as Result's does.
func (s *SearchResult) MarshalJSON() ([]byte, error) {
	type fields SearchResult
	return json.Marshal(struct {
		Schema int `json:"schema"`
		*fields
	}{resultSchema, (*fields)(s)})
}
