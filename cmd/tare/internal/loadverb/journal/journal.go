// Package journal keeps what is known of a load while it runs.
package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tarehq/tare/load"
)

// Journal is a file to which a run's state goes every second, so that what was
// seen outlives even a kill. Nil writes nothing.
type Journal struct {
	f      file
	err    error         // the first of writing
	noted  chan struct{} // something is to be brought to disk; nil: the file has none
	synced chan error    // the first error of that, when noted is closed
}

// file is what a journal needs of a file.
type file interface {
	io.WriteCloser
	Sync() error
}

// line is the state of a run.
type line struct {
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

// Open opens the journal; without a path there is none.
func Open(path string) (*Journal, error) {
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
func newJournal(f file, onDisk bool) *Journal {
	j := &Journal{f: f}
	if onDisk {
		j.noted, j.synced = make(chan struct{}, 1), make(chan error, 1)
		go j.sync()
	}
	return j
}

func (j *Journal) sync() {
	var first error
	for range j.noted {
		first = cmp.Or(first, j.f.Sync())
	}
	j.synced <- first
}

// Note appends a state.
func (j *Journal) Note(s load.Snapshot) {
	if j == nil || j.err != nil {
		return
	}
	h := s.Response
	text, err := json.Marshal(line{
		Time: time.Now().UTC(), ElapsedNS: s.Elapsed, Rate: s.Rate, InFlight: s.Flight,
		Scheduled: s.Counts.Scheduled, Status: s.Counts.Status, Failed: s.Counts.Failed(), Dropped: s.Counts.Dropped,
		P50NS: h.Quantile(.5), P90NS: h.Quantile(.9), P99NS: h.Quantile(.99), MaxNS: h.Max(),
	})
	if err == nil {
		_, err = j.f.Write(append(text, '\n'))
	}
	j.err = err
	select {
	case j.noted <- struct{}{}:
	default: // the line goes with one before it
	}
}

// Close ends the journal and reports its first error.
func (j *Journal) Close() error {
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
