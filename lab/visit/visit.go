// Package visit works out from a server's log of requests their true response times.
package visit

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/stats/hist"
)

// File is the log that a server may write in its working directory.
const File = "requests.csv"

// Visit is what a server saw of one request, in nanoseconds since 1970.
type Visit struct{ arrival, departure int64 }

// Read reads the requests that arrived since then: a CSV file with a
// header, of which the columns arrival_unix_ns and departure_unix_ns are used.
func Read(path string, since time.Time) ([]Visit, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Scan()
	head := strings.Split(in.Text(), ",")
	arrival, departure := slices.Index(head, "arrival_unix_ns"), slices.Index(head, "departure_unix_ns")
	if arrival < 0 || departure < 0 {
		return nil, errors.Join(fmt.Errorf("reading the server's log: its head %.80q lacks arrival_unix_ns or departure_unix_ns", in.Text()), in.Err())
	}
	var all []Visit
	for line := 2; in.Scan(); line++ {
		row := strings.Split(in.Text(), ",")
		if len(row) != len(head) {
			return nil, fmt.Errorf("reading the server's log: line %d has %d columns, not %d", line, len(row), len(head))
		}
		a, err := strconv.ParseInt(row[arrival], 10, 64)
		d, err2 := strconv.ParseInt(row[departure], 10, 64)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("reading the server's log: line %d: %w", line, err)
		}
		if a >= since.UnixNano() {
			all = append(all, Visit{a, d})
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("reading the server's log: %w", err)
	}
	return all, nil
}

// Responses are the true response times of an open loop at a constant rate,
// from the server's side: departure less intended start. It sorts the log.
//
// The n-th request to arrive had the n-th intended start, n/rate after the
// first, and the first is the latest that no request arrives before its
// intended start: nobody knows when the generator began, and a first
// arrival would take its connecting for the rest's. What requests and answers
// spend at least on the way is so left out, some ten microseconds on one
// machine.
func Responses(log []Visit, rate float64) *hist.Hist {
	slices.SortFunc(log, func(a, b Visit) int { return cmp.Compare(a.arrival, b.arrival) })
	begun := int64(math.MaxInt64)
	for i, v := range log {
		begun = min(begun, v.arrival-due(i, rate))
	}
	h := hist.New()
	for i, v := range log {
		h.Record(v.departure - begun - due(i, rate))
	}
	return h
}

// due is when request i is, after the first.
func due(i int, rate float64) int64 { return int64(float64(i) / rate * 1e9) }
