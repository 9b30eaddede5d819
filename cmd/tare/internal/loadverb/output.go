package loadverb

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/remote"
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
	Title      string         `json:"title"`
	Thresholds []outcome      `json:"thresholds"` // in the order of --fail-if
	Agents     *remote.Report `json:"fleet,omitempty"`
	Result     *load.Result   `json:"-"`
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
