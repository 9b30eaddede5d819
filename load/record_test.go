package load_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// Times that are alike are recorded once and must count as each of them.
func TestTimes(t *testing.T) {
	snap, res := load.Recorded(
		load.Moments{Intended: 0, Start: 0, FirstByte: 100, End: 100}, // all alike
		load.Moments{Intended: 100, Start: 100, FirstByte: 250, End: 300},
		load.Moments{Intended: 200, Start: 330, FirstByte: 340, End: 340},
		load.Moments{Intended: 300, Start: 310, FirstByte: 370, End: 400},
	)
	for _, tc := range []struct {
		name string
		got  *hist.Hist
		want [4]time.Duration // in their order
	}{
		{"response", res.Response, [4]time.Duration{100, 100, 140, 200}},
		{"service", res.Service, [4]time.Duration{10, 90, 100, 200}},
		{"first byte", res.FirstByte, [4]time.Duration{10, 60, 100, 150}},
		{"lag", res.Lag, [4]time.Duration{0, 0, 10, 130}},
		{"response in the snapshot", snap.Response, [4]time.Duration{100, 100, 140, 200}},
		{"service in the snapshot", snap.Service, [4]time.Duration{10, 90, 100, 200}},
	} {
		var got [4]time.Duration
		for i := range got {
			got[i] = time.Duration(tc.got.Quantile((float64(i) + 0.5) / 4))
		}
		if got != tc.want || tc.got.Count() != 4 {
			t.Errorf("%s: got %v of %d requests, want %v of 4", tc.name, got, tc.got.Count(), tc.want)
		}
	}
	if s := res.Series[0]; s.Answered != 4 || s.P50 != 100 || s.Max != 200 {
		t.Errorf("slice: got %d answers, p50 %v, max %v, want 4, 100ns, 200ns", s.Answered, s.P50, s.Max)
	}
}

// A slice has its own quantiles.
func TestSliceTimes(t *testing.T) {
	const us = time.Microsecond
	var all []load.Moments
	for i := range time.Duration(400) {
		second := i / 200 * time.Second
		took := (i%200 + 1) * us * (1 + i/200) // 1 to 200 µs, then 2 to 400
		all = append(all, load.Moments{Intended: second, Start: second, FirstByte: second + took, End: second + took})
	}
	_, res := load.Recorded(all...)
	if len(res.Series) != 2 {
		t.Fatalf("got %d slices, want 2", len(res.Series))
	}
	for i, sl := range res.Series {
		got, want := [3]time.Duration{sl.P50, sl.P99, sl.Max}, [3]time.Duration{100 * us, 198 * us, 200 * us}
		for k := range want {
			want[k] *= time.Duration(1 + i)
			if off := got[k] - want[k]; off < 0 || off > want[k]/1000 {
				t.Errorf("slice %d: got p50, p99, max %v, want %v", i, got, want)
			}
		}
	}
}

// Times beyond what a histogram keeps are cut, and a warning says so.
func TestTooLong(t *testing.T) {
	for _, tc := range []struct {
		took time.Duration
		want string
	}{
		{time.Hour, ""},
		{time.Hour + time.Second, "1 of 2 requests was not answered within an hour"},
	} {
		_, res := load.Recorded(load.Moments{FirstByte: 100, End: 100}, load.Moments{FirstByte: tc.took, End: tc.took})
		got := fmt.Sprint(res.Warnings)
		if res.Response.Max() != int64(time.Hour) || strings.Contains(got, "within an hour") != (tc.want != "") || !strings.Contains(got, tc.want) {
			t.Errorf("%v: got at most %v, warnings %s; want 1h and %q", tc.took, time.Duration(res.Response.Max()), got, tc.want)
		}
	}
}

// An answer that is read late counts until it came: in its times and in the
// requests in flight.
func TestReadLate(t *testing.T) {
	_, res := load.Recorded(
		load.Moments{Intended: 0, Start: 0, FirstByte: 100, End: 100, Read: 900},
		load.Moments{Intended: 1000, Start: 1000, FirstByte: 1300, End: 1300},
	)
	if got := res.Unread; got.Count() != 1 || got.Max() != 800 {
		t.Errorf("read late: got %d answers, at most %v, want one, 800 ns", got.Count(), got.Max())
	}
	if got := res.Response.Max(); got != 300 {
		t.Errorf("longest response time: got %d ns, want 300", got)
	}
	if got, want := res.MeanFlight*float64(res.Elapsed), 400.0; math.Abs(got-want) > 1e-6 {
		t.Errorf("in flight: got %v request-nanoseconds, want %v", got, want)
	}
}

// What is dropped was never in flight, however late the generator was to drop it.
func TestDroppedLate(t *testing.T) {
	res := load.RecordedFull(time.Second, time.Second, time.Second)
	if res.Counts.Dropped != 3 || res.MeanFlight != 0 || res.PeakFlight != 0 {
		t.Errorf("got %d dropped, %g in flight on average and %d at most, want 3 and none", res.Counts.Dropped, res.MeanFlight, res.PeakFlight)
	}
}

// An answer belongs to the slice in which it came, the last one too.
func TestReadLateBehindTheEnd(t *testing.T) {
	const ms = time.Millisecond
	_, res := load.Recorded(
		load.Moments{Intended: 0, Start: 0, FirstByte: 1 * ms, End: 1 * ms},
		load.Moments{Intended: 900 * ms, Start: 900 * ms, FirstByte: 999 * ms, End: 999 * ms, Read: 1001 * ms},
	)
	checkSums(t, res)
	if len(res.Series) != 1 || res.Series[0].Answered != 2 {
		t.Errorf("got slices %+v, want one with both answers", res.Series)
	}
}

func TestRecordAllocates(t *testing.T) {
	for _, parted := range []bool{false, true} {
		record := load.RecordRequests(parted)
		if got := testing.AllocsPerRun(1000, record); got != 0 {
			t.Errorf("parted %v: got %v allocations a request, want none", parted, got)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	for _, parted := range []bool{false, true} {
		b.Run(fmt.Sprintf("parted=%v", parted), func(b *testing.B) {
			record := load.RecordRequests(parted)
			b.ReportAllocs()
			for b.Loop() {
				record()
			}
		})
	}
}

// TestSeriesOfWorkers has each slice hold what all workers saw end in it, and no
// slice what was in an earlier one.
func TestSeriesOfWorkers(t *testing.T) {
	const workers = 3
	var all []load.Moments
	for i := range 4 {
		begin := time.Duration(i)*time.Second + 500*time.Millisecond
		took := time.Duration(40-10*i) * time.Millisecond
		all = append(all, load.Moments{Intended: begin, Start: begin, FirstByte: begin + took/2, End: begin + took})
	}
	r := load.RecordedBy(workers, all...)
	if r.Response.Count() != 4*workers || r.Counts.Dropped != 4*workers || r.BytesIn != 200*4*workers || len(r.Series) != 4 {
		t.Fatalf("%d answers, %d dropped, %d bytes, %d slices, want %d, %d, %d, 4", r.Response.Count(), r.Counts.Dropped, r.BytesIn, len(r.Series), 4*workers, 4*workers, 200*4*workers)
	}
	for i, s := range r.Series {
		took := all[i].End - all[i].Intended
		if s.At != time.Duration(i)*time.Second || s.Answered != workers || s.Dropped != workers || s.BytesIn != 200*workers || s.P50 != s.Max || s.Max < took || s.Max > took+took/500 {
			t.Errorf("slice %d: got %+v, want %d answered within %v and as many dropped", i, s, workers, took)
		}
	}
}
