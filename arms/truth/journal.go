package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// flushEvery is how far the file may be behind.
const flushEvery = 100 * time.Millisecond

// entry is one request. Times count from the exit's start.
type entry struct {
	arrival, departure time.Duration
	held               time.Duration // as intended
	seq                int64
	numbered           bool // seq was given
}

// journal writes down requests, away from those who answer them: a slow disk
// holds up nobody. The zero value forgets them.
type journal struct {
	epoch   int64 // of the entries' times, nanoseconds since 1970
	file    *os.File
	mu      sync.Mutex
	entries []entry       // not yet written
	ending  chan struct{} // closed when there is no more to come
	ended   chan error
}

func openJournal(path string, epoch time.Time) (*journal, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	j := &journal{epoch: epoch.UnixNano(), file: f, ending: make(chan struct{}), ended: make(chan error, 1)}
	go func() { j.ended <- j.write() }()
	return j, nil
}

func (j *journal) add(e entry) {
	if j.file == nil {
		return
	}
	j.mu.Lock()
	j.entries = append(j.entries, e)
	j.mu.Unlock()
}

// take exchanges the entries that have come for an empty slice.
func (j *journal) take(empty []entry) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	full := j.entries
	j.entries = empty
	return full
}

// write writes until the journal is closed.
func (j *journal) write() (err error) {
	w := bufio.NewWriter(j.file)
	fmt.Fprintln(w, "arrival_unix_ns,work_ns,departure_unix_ns,seq")
	var entries []entry
	var row []byte
	for last := false; !last; {
		select {
		case <-j.ending:
			last = true
		case <-time.After(flushEvery):
		}
		entries = j.take(entries[:0])
		for _, e := range entries {
			row = j.append(row[:0], e)
			w.Write(row)
		}
		// An error stays with w, which then drops what it is given.
		err = w.Flush()
	}
	return errors.Join(err, j.file.Close())
}

// append appends an entry's line.
func (j *journal) append(b []byte, e entry) []byte {
	for _, v := range []int64{j.epoch + int64(e.arrival), int64(e.held), j.epoch + int64(e.departure)} {
		b = append(strconv.AppendInt(b, v, 10), ',')
	}
	if e.numbered {
		b = strconv.AppendInt(b, e.seq, 10)
	}
	return append(b, '\n')
}

// close writes what is left.
func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	close(j.ending)
	if err := <-j.ended; err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}
