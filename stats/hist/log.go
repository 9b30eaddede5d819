package hist

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// What a log can make ReadLog hold, however it was written.
const (
	maxLine    = 1 << 20  // bytes; the longest histogram takes 410 kB
	maxOctaves = 256 << 7 // of all histograms: 256 MiB
	maxEntries = 200_000  // such as one a second for two days, if nearly empty
)

// Entry is one histogram of a log.
type Entry struct {
	Tag    string        // what is measured; no commas, spaces or control characters
	Start  time.Time     // of the interval, not before 1970; zero: not known
	Length time.Duration // of the interval, not negative
	Hist   *Hist
}

// WriteLog writes entries in HdrHistogram's log format 1.3, which its readers
// in every language take. They read the same counts, times to a millisecond
// and, in the column for people, the maximum in milliseconds. The exact sum and
// the exact minimum are not part of the format.
func WriteLog(w io.Writer, entries []Entry) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "#[Histogram log format version 1.3]")
	if first := earliest(entries); !first.IsZero() {
		fmt.Fprintf(b, "#[StartTime: %s (seconds since epoch), %s]\n", seconds(sinceEpoch(first)), first.UTC().Format(time.RFC3339))
	}
	// Said outright: readers guess that intervals long before StartTime, as one
	// whose start is not known would be, count from it.
	fmt.Fprintln(b, "#[BaseTime: 0.000 (seconds since epoch)]")
	fmt.Fprintln(b, legend)
	for i, e := range entries {
		if err := writeEntry(b, e); err != nil {
			return fmt.Errorf("writing histogram log: entry %d: %w", i, err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing histogram log: %w", err)
	}
	return nil
}

const legend = `"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"`

func writeEntry(b *bufio.Writer, e Entry) error {
	start := sinceEpoch(e.Start)
	switch {
	case badTag(e.Tag):
		return fmt.Errorf("tag %q has a comma, a space or a control character", e.Tag)
	case start < 0 || e.Length < 0:
		return fmt.Errorf("starts at %v for %v; the format has no negative times", e.Start, e.Length)
	case e.Hist == nil:
		return errors.New("has no histogram")
	}
	text, err := e.Hist.encode()
	if err != nil {
		return err
	}
	if e.Tag != "" {
		fmt.Fprintf(b, "Tag=%s,", e.Tag)
	}
	_, err = fmt.Fprintf(b, "%s,%s,%.6f,%s\n", seconds(start), seconds(e.Length), float64(e.Hist.Max())/1e6, text)
	return err
}

func badTag(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == ',' || r == 0x7f })
}

// earliest is the first known start, zero when none is known.
func earliest(entries []Entry) (t time.Time) {
	for _, e := range entries {
		if !e.Start.IsZero() && (t.IsZero() || e.Start.Before(t)) {
			t = e.Start
		}
	}
	return t
}

// sinceEpoch is 0 for the zero time. The two centuries after 1970 fit.
func sinceEpoch(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(time.Unix(0, 0))
}

// seconds writes d ≥ 0 exactly.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
}

// ReadLog reads a log written by WriteLog or by another HdrHistogram, whose
// histograms must count from 1 with three digits and are taken to be in
// nanoseconds. The maximum is taken from its column where that lies in the
// highest bucket; the minimum and the mean are to the precision of the buckets.
// Times are absolute; those that a log gives relative to its start are added to
// it. Errors name the line. Whatever the log says, no more than 256 MiB are
// taken for counters and no more than 200,000 histograms read.
func ReadLog(r io.Reader) ([]Entry, error) {
	l := log{lines: bufio.NewScanner(r)}
	l.lines.Buffer(nil, maxLine)
	n := 1
	for ; l.lines.Scan(); n++ {
		if err := l.line(l.lines.Text()); err != nil {
			return nil, fmt.Errorf("reading histogram log: line %d: %w", n, err)
		}
	}
	if err := l.lines.Err(); err != nil {
		return nil, fmt.Errorf("reading histogram log: line %d: %w", n, err)
	}
	return l.entries, nil
}

// log is a log as far as it has been read.
type log struct {
	lines       *bufio.Scanner
	entries     []Entry
	octaves     int            // of all entries
	start, base *time.Duration // as the log says; nil before it does
}

// yearLong is what tells relative times: no log starts a year before itself.
const yearLong = 365 * 24 * time.Hour

func (l *log) line(s string) error {
	switch {
	case strings.HasPrefix(s, "#[StartTime: "):
		return headTime(s, &l.start)
	case strings.HasPrefix(s, "#[BaseTime: "):
		return headTime(s, &l.base)
	case s == "" || s[0] == '#' || s[0] == '"':
		return nil
	}
	e, at, err := parseEntry(s)
	if err != nil {
		return err
	}
	for _, o := range e.Hist.octaves {
		if o != nil {
			l.octaves++
		}
	}
	if l.octaves > maxOctaves || len(l.entries) >= maxEntries {
		return errors.New("log holds more histograms than are read at once")
	}
	if l.base == nil {
		l.base = new(time.Duration)
		if l.start != nil && at < *l.start-yearLong {
			l.base = l.start
		}
	}
	if at > math.MaxInt64-*l.base {
		return errors.New("starts too far in the future")
	}
	if at += *l.base; at > 0 {
		e.Start = time.Unix(0, int64(at)).UTC()
	}
	l.entries = append(l.entries, e)
	return nil
}

// headTime reads a line such as "#[BaseTime: 12.345 (seconds since epoch)]".
func headTime(s string, to **time.Duration) error {
	_, text, _ := strings.Cut(s, ": ")
	text, _, _ = strings.Cut(text, " ")
	d, err := parseSeconds(text)
	if err != nil {
		return err
	}
	*to = &d
	return nil
}

// parseEntry reads one interval; at is its start as written.
func parseEntry(s string) (e Entry, at time.Duration, err error) {
	if rest, ok := strings.CutPrefix(s, "Tag="); ok {
		e.Tag, s, _ = strings.Cut(rest, ",")
		if badTag(e.Tag) {
			return e, 0, fmt.Errorf("tag %q has a space or a control character", e.Tag)
		}
	}
	f := strings.SplitN(s, ",", 4)
	if len(f) < 4 {
		return e, 0, fmt.Errorf("has %d fields, want start, length, maximum and histogram", len(f))
	}
	if at, err = parseSeconds(f[0]); err != nil {
		return e, 0, err
	}
	if e.Length, err = parseSeconds(f[1]); err != nil {
		return e, 0, err
	}
	if e.Hist, err = decode(strings.TrimSpace(f[3])); err != nil {
		return e, 0, fmt.Errorf("decoding histogram: %w", err)
	}
	e.Hist.setMax(f[2])
	return e, at, nil
}

// setMax takes the maximum from text in milliseconds if that is in the highest
// bucket: the column's unit is the writer's choice.
func (h *Hist) setMax(text string) {
	// A millisecond is a millionth of 1,000 s.
	ms, err := parseSeconds(text)
	if ns := int64(ms / 1000); err == nil && h.n > 0 && index(ns) == index(h.max) {
		h.max = max(ns, h.min)
	}
}

// parseSeconds reads a decimal number of seconds; digits below a nanosecond are
// dropped.
func parseSeconds(text string) (time.Duration, error) {
	whole, frac, _ := strings.Cut(text, ".")
	nanos := (frac + "000000000")[:9]
	ns, err := strconv.ParseUint(whole+nanos, 10, 63)
	if err != nil || whole+frac == "" {
		return 0, fmt.Errorf("%q is not a number of seconds up to %d", text, math.MaxInt64/time.Second)
	}
	return time.Duration(ns), nil
}
