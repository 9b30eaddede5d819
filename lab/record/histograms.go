package record

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tarehq/tare/stats/hist"
)

// Tags of the histograms in a trial's log.
const (
	responseTag = "response"
	serviceTag  = "service"
	opTag       = responseTag + "/" // begins that of an operation
)

func histPath(dir, name string) string {
	return filepath.Join(dir, histName, name+".hlog")
}

func writeHistograms(dir string, t Trial, h *Histograms) error {
	var entries []hist.Entry
	if h.Response != nil {
		entries = append(entries, hist.Entry{Tag: responseTag, Start: t.Start, Length: t.Elapsed, Hist: h.Response})
	}
	if h.Service != nil {
		entries = append(entries, hist.Entry{Tag: serviceTag, Start: t.Start, Length: t.Elapsed, Hist: h.Service})
	}
	for _, name := range slices.Sorted(maps.Keys(h.Operations)) {
		entries = append(entries, hist.Entry{Tag: opTag + name, Start: t.Start, Length: t.Elapsed, Hist: h.Operations[name]})
	}
	var buf bytes.Buffer
	if err := hist.WriteLog(&buf, entries); err != nil {
		return fmt.Errorf("writing histograms: %w", err)
	}
	if err := writeFile(histPath(dir, t.Hist), buf.Bytes()); err != nil {
		return fmt.Errorf("writing histograms: %w", err)
	}
	return nil
}

// Histograms reads the histograms kept of a trial of this run; all are nil
// where none were kept.
func (r *Run) Histograms(t Trial) (*Histograms, error) {
	h := &Histograms{}
	if t.Hist == "" {
		return h, nil
	}
	if t.Hist != filepath.Base(t.Hist) || t.Hist == ".." {
		return nil, fmt.Errorf("reading histograms of trial %d: %q is no name within the run", t.Seq, t.Hist)
	}
	f, err := openFile(histPath(r.Dir, t.Hist))
	if err != nil {
		return nil, fmt.Errorf("reading histograms of trial %d: %w", t.Seq, err)
	}
	defer f.Close()
	entries, err := hist.ReadLog(f)
	if err != nil {
		return nil, fmt.Errorf("reading histograms of trial %d: %s: %w", t.Seq, f.Name(), err)
	}
	for _, e := range entries {
		switch e.Tag {
		case responseTag:
			h.Response = e.Hist
		case serviceTag:
			h.Service = e.Hist
		}
		if name, of := strings.CutPrefix(e.Tag, opTag); of {
			if h.Operations == nil {
				h.Operations = map[string]*hist.Hist{}
			}
			h.Operations[name] = e.Hist
		}
	}
	return h, nil
}
