// Package headline reads what tare printed down to one line.
package headline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tarehq/tare/stats/unit"
)

// Most is how long a line is at most, in bytes.
const Most = 1024

// Complaint is the last thing that tare said when it failed; "" if it said nothing.
func Complaint(stderr []byte) string {
	said := ""
	for line := range strings.Lines(string(stderr)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "tare: "); ok && !strings.HasPrefix(text, "hint: ") {
			said = text
		}
	}
	return said
}

// Of is what tare printed of a Study or a LoadTest comes to, as a line. It is an error if that
// has no result.
func Of(kind string, output []byte) (string, error) {
	if kind == "LoadTest" {
		return loadVerdict(output)
	}
	var report struct {
		Headline string `json:"headline"`
	}
	if err := json.Unmarshal(output, &report); err != nil || report.Headline == "" {
		return "", errors.New("tare printed no report of a study")
	}
	return Line(report.Headline), nil
}

// loadVerdict reads what docs/load.md says of the result of tare load. The type that it was
// written from cannot be read back: its histograms are tables there.
func loadVerdict(output []byte) (string, error) {
	var r struct {
		Rate   *float64 `json:"rate"`
		Counts struct {
			Scheduled, Answered uint64
			Status              map[string]uint64
		} `json:"counts"`
		Response   map[string]float64 `json:"response"`
		Thresholds []struct {
			FailIf  string `json:"fail_if"`
			Outcome string `json:"outcome"`
			Value   string `json:"value"`
		} `json:"thresholds"`
	}
	if err := json.Unmarshal(output, &r); err != nil || r.Rate == nil {
		return "", errors.New("tare printed no result of a load")
	}
	parts := []string{unit.Format(*r.Rate, unit.PerSecond)}
	for _, q := range []string{"p50", "p99"} {
		if v, ok := r.Response[q+"_ns"]; ok {
			parts = append(parts, q+" "+unit.Format(v, unit.Nanoseconds))
		}
	}
	if r.Counts.Scheduled > 0 {
		failed := r.Counts.Scheduled - min(r.Counts.Scheduled, r.Counts.Answered) + r.Counts.Status["4xx"] + r.Counts.Status["5xx"]
		parts = append(parts, unit.Format(float64(failed)/float64(r.Counts.Scheduled), unit.Share)+" failed")
	}
	for _, t := range r.Thresholds {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", t.FailIf, t.Outcome, t.Value)))
	}
	return Line(strings.Join(parts, ", ")), nil
}

// Line is a text as one line of bounded length.
func Line(text string) string { return Cut(strings.Join(strings.Fields(text), " "), Most) }

// Cut shortens a text to a number of bytes, between two characters.
func Cut(text string, most int) string {
	const more = " …"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}
