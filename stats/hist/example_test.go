package hist_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/tarehq/tare/stats/hist"
)

func Example() {
	h := hist.New()
	for i := range int64(100) {
		h.Record((i + 1) * 1000)
	}
	fmt.Println(h.Count(), h.Quantile(0.5), h.Quantile(0.99), h.Max())
	// Output: 100 50015 99007 100000
}

// A part of a run is what has come since a copy was taken.
func ExampleHist_Sub() {
	h := hist.New()
	h.RecordN(int64(2*time.Millisecond), 1000)
	before := h.Clone()
	h.RecordN(int64(30*time.Millisecond), 10)

	part := h.Clone()
	if err := part.Sub(before); err != nil {
		fmt.Println(err)
	}
	fmt.Println(part.Count(), time.Duration(part.Mean()))
	// Output: 10 30ms
}

func ExampleWriteLog() {
	h := hist.New()
	h.Record(int64(3 * time.Millisecond))
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	var log bytes.Buffer
	if err := hist.WriteLog(&log, []hist.Entry{{Tag: "response", Start: start, Length: time.Second, Hist: h}}); err != nil {
		fmt.Println(err)
		return
	}
	entries, err := hist.ReadLog(&log)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range entries {
		fmt.Println(e.Tag, e.Start, e.Length, e.Hist.Count(), time.Duration(e.Hist.Max()))
	}
	// Output: response 2026-01-02 03:04:05 +0000 UTC 1s 1 3ms
}
