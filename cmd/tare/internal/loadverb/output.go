package loadverb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// check finds out before a run what would keep its results from being written
// after it.
func (c *Output) check(read ...string) error {
	flag := "--journal"
	if c.Journal == "" {
		flag = "--output's journal"
	}
	return cli.CheckOutputs([]cli.Output{{Flag: "--output", Path: c.Output}, {Flag: "--html", Path: c.HTML}, {Flag: "--markdown", Path: c.Markdown}, {Flag: "--csv", Path: c.CSV}, {Flag: "--hdr", Path: c.HDR}, {Flag: flag, Path: c.journalPath()}}, read...)
}

// journalPath is the journal asked for, or the one beside --output; "" is none.
func (c *Output) journalPath() string {
	if c.Journal != "" || c.Output == "" {
		return c.Journal
	}
	if !cli.Replaces(c.Output) {
		return ""
	}
	return strings.TrimSuffix(c.Output, filepath.Ext(c.Output)) + ".journal.jsonl"
}

// document is what is written as JSON: the result's own keys, after what was
// asked for and what became of the thresholds.
type document struct {
	Title      string       `json:"title"`
	Thresholds []outcome    `json:"thresholds"` // in the order of --fail-if
	Result     *load.Result `json:"-"`
}

// MarshalJSON puts the two together, the result's keys last.
func (d document) MarshalJSON() ([]byte, error) {
	type alone document
	head, err := json.Marshal(alone(d))
	if err != nil {
		return nil, err
	}
	result, err := json.Marshal(d.Result)
	if err != nil {
		return nil, err
	}
	return slices.Concat(bytes.TrimSuffix(head, []byte("}")), []byte(","), bytes.TrimPrefix(result, []byte("{"))), nil
}

// keep writes a result to the files asked for; each that can be is written.
func (c *Output) keep(d document) error {
	return errors.Join(
		c.keepJSON(d),
		cli.WriteFile(c.CSV, d.Result.WriteSeries),
		cli.WriteFile(c.HDR, func(w io.Writer) error { return hist.WriteLog(w, entries(d.Result)) }),
	)
}

func (c *Output) keepJSON(v any) error {
	return cli.WriteFile(c.Output, func(w io.Writer) error { return cli.WriteJSON(w, v) })
}

// show writes a page to the files asked for, and to standard output that or v as JSON.
func (c *Output) show(t *cli.Terminal, p doc.Page, v any) error {
	lost := errors.Join(
		cli.WriteFile(c.HTML, func(w io.Writer) error { return doc.HTML(w, p, doc.HTMLOptions{}) }),
		cli.WriteFile(c.Markdown, func(w io.Writer) error { return doc.Markdown(w, p) }),
	)
	if c.JSON {
		return errors.Join(lost, t.JSON(v))
	}
	return errors.Join(lost, doc.Text(t.Out, p, t.PageLayout()))
}

// entries are the histograms of a result that hold something.
func entries(res *load.Result) []hist.Entry {
	var all []hist.Entry
	for _, e := range []hist.Entry{
		{Tag: "response", Hist: res.Response}, {Tag: "service", Hist: res.Service}, {Tag: "lag", Hist: res.Lag},
		{Tag: "first-byte", Hist: res.FirstByte}, {Tag: "connect", Hist: res.Connect}, {Tag: "handshake", Hist: res.Handshake},
	} {
		if e.Hist.Count() > 0 {
			e.Start, e.Length = res.Started, res.Elapsed
			all = append(all, e)
		}
	}
	return all
}

// journal is a file to which a run's state goes every second, so that what was
// seen outlives even a kill. Nil writes nothing.
type journal struct {
	f      journalFile
	err    error         // the first of writing
	noted  chan struct{} // something is to be brought to disk; nil: the file has none
	synced chan error    // the first error of that, when noted is closed
}

// journalFile is what a journal needs of a file.
type journalFile interface {
	io.WriteCloser
	Sync() error
}

// journalLine is the state of a run.
type journalLine struct {
	Time      time.Time     `json:"time"`
	ElapsedNS time.Duration `json:"elapsed_ns"` // negative while warming up
	Rate      float64       `json:"rate"`       // answers a second over about the last second
	InFlight  int           `json:"in_flight"`
	Scheduled uint64        `json:"scheduled"`
	Status    [6]uint64     `json:"status"` // answers by class: the third is 2xx
	Failed    uint64        `json:"failed"`
	Dropped   uint64        `json:"dropped"`
	P50NS     int64         `json:"p50_ns"` // response times so far
	P90NS     int64         `json:"p90_ns"`
	P99NS     int64         `json:"p99_ns"`
	MaxNS     int64         `json:"max_ns"`
}

// openJournal opens the journal, if there is one.
func (c *Output) openJournal() (*journal, error) {
	path := c.journalPath()
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening journal: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening journal: %w", err), f.Close())
	}
	return newJournal(f, info.Mode().IsRegular()), nil
}

// newJournal is a journal in f. If it is on disk its lines are brought there by a
// goroutine: a disk may take long, and who notes has the run to look after.
func newJournal(f journalFile, onDisk bool) *journal {
	j := &journal{f: f}
	if onDisk {
		j.noted, j.synced = make(chan struct{}, 1), make(chan error, 1)
		go j.sync()
	}
	return j
}

func (j *journal) sync() {
	var first error
	for range j.noted {
		first = cmp.Or(first, j.f.Sync())
	}
	j.synced <- first
}

// note appends a state.
func (j *journal) note(s load.Snapshot) {
	if j == nil || j.err != nil {
		return
	}
	h := s.Response
	line, err := json.Marshal(journalLine{
		Time: time.Now().UTC(), ElapsedNS: s.Elapsed, Rate: s.Rate, InFlight: s.Flight,
		Scheduled: s.Counts.Scheduled, Status: s.Counts.Status, Failed: s.Counts.Failed(), Dropped: s.Counts.Dropped,
		P50NS: h.Quantile(.5), P90NS: h.Quantile(.9), P99NS: h.Quantile(.99), MaxNS: h.Max(),
	})
	if err == nil {
		_, err = j.f.Write(append(line, '\n'))
	}
	j.err = err
	select {
	case j.noted <- struct{}{}:
	default: // the line goes with one before it
	}
}

// close reports the first error of the journal.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	if j.noted != nil {
		close(j.noted)
		j.err = cmp.Or(j.err, <-j.synced)
	}
	if err := errors.Join(j.err, j.f.Close()); err != nil {
		return fmt.Errorf("writing journal: %w", err)
	}
	return nil
}
