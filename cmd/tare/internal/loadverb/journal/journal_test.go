package journal

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

func snapshot(elapsed time.Duration) load.Snapshot {
	h := hist.New()
	h.RecordN(1000, 100)
	return load.Snapshot{Elapsed: elapsed, Rate: 100, Response: h, Service: h, Counts: load.Counts{Scheduled: 100, Status: load.Classes{2: 100}}}
}

func TestJournalReportsFirstError(t *testing.T) {
	j, err := Open("/dev/full")
	if err != nil {
		t.Skipf("this system has no /dev/full: %v", err)
	}
	j.Note(snapshot(time.Second))
	j.Note(snapshot(2 * time.Second))
	if err := j.Close(); err == nil || !strings.Contains(err.Error(), "writing journal") {
		t.Errorf("closing a journal that could not be written: got %v, want an error", err)
	}
}

// disk is a journal's file that tells how much of it is on disk.
type disk struct {
	bytes.Buffer
	synced int
	broken error
}

func (d *disk) Sync() error  { d.synced = d.Len(); return d.broken }
func (d *disk) Close() error { return nil }

// Each second's line is brought to disk, when it comes and not when the run is over.
func TestJournalReachesDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		j := newJournal(d, true)
		for second := range 3 {
			j.Note(snapshot(time.Duration(second) * time.Second))
			synctest.Wait()
			if lines := bytes.Count(d.Bytes(), []byte("\n")); lines != second+1 || d.synced != d.Len() {
				t.Errorf("second %d: got %d lines, %d of %d bytes on disk", second, lines, d.synced, d.Len())
			}
		}
		d.broken = errors.New("the disk is broken")
		j.Note(snapshot(3 * time.Second))
		if err := j.Close(); !errors.Is(err, d.broken) || d.synced != d.Len() {
			t.Errorf("closing: got %v, %d of %d bytes on disk; want %v and all", err, d.synced, d.Len(), d.broken)
		}
	})
}

// What is no file on disk needs not be brought there, and would refuse to be.
func TestJournalOfNoFile(t *testing.T) {
	j, err := Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	j.Note(snapshot(time.Second))
	if err := j.Close(); err != nil {
		t.Errorf("a journal in %s: %v", os.DevNull, err)
	}
}
