package load

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tarehq/tare/stats/hist"
)

// resultSchema is the version of the shape that MarshalJSON writes. It grows
// when a key changes its meaning or goes; new keys leave it as it is.
const resultSchema = 1

// resultJSON mirrors Result, which cannot carry its tags: histograms become tables of
// quantiles, errors become texts, and the figures of connections and of the generator
// stand together.
type resultJSON struct {
	Schema     int            `json:"schema"`
	Started    time.Time      `json:"started"`
	ElapsedNS  int64          `json:"elapsed_ns"`
	Ended      string         `json:"ended"`
	Engine     Engine         `json:"engine"`
	Threads    int            `json:"threads"`
	Rate       float64        `json:"rate"`
	Counts     countsJSON     `json:"counts"`
	WarmUp     countsJSON     `json:"warm_up"`
	Response   *timesJSON     `json:"response,omitempty"`
	Service    *timesJSON     `json:"service,omitempty"`
	FirstByte  *timesJSON     `json:"first_byte,omitempty"`
	Connect    *timesJSON     `json:"connect,omitempty"`
	Handshake  *timesJSON     `json:"handshake,omitempty"`
	BytesIn    uint64         `json:"bytes_in"`
	BytesOut   uint64         `json:"bytes_out"`
	Conns      connectionJSON `json:"connections"`
	MeanFlight float64        `json:"mean_in_flight"`
	PeakFlight int            `json:"peak_in_flight"`
	Generator  generatorJSON  `json:"generator"`
	Series     []Slice        `json:"series"`
	Warnings   []string       `json:"warnings"`
}

type countsJSON struct {
	Scheduled  uint64            `json:"scheduled"`
	Answered   uint64            `json:"answered"`
	Status     map[string]uint64 `json:"status"` // "1xx" … "5xx"
	Refused    uint64            `json:"refused"`
	Reset      uint64            `json:"reset"`
	Timeout    uint64            `json:"timeout"`
	Short      uint64            `json:"short"`
	Malformed  uint64            `json:"malformed"`
	Dropped    uint64            `json:"dropped"`
	Unverified uint64            `json:"unverified"`
}

type timesJSON struct {
	Count  uint64  `json:"count"`
	MeanNS float64 `json:"mean_ns"`
	P50NS  *int64  `json:"p50_ns,omitempty"`
	P75NS  *int64  `json:"p75_ns,omitempty"`
	P90NS  *int64  `json:"p90_ns,omitempty"`
	P95NS  *int64  `json:"p95_ns,omitempty"`
	P99NS  *int64  `json:"p99_ns,omitempty"`
	P999   *int64  `json:"p99.9_ns,omitempty"`
	P9999  *int64  `json:"p99.99_ns,omitempty"`
	MaxNS  int64   `json:"max_ns"`
}

type connectionJSON struct {
	Opened  uint64 `json:"opened"`
	Reused  uint64 `json:"reused"`
	Full    uint64 `json:"full_handshakes"`
	Resumed uint64 `json:"resumed_handshakes"`
	Waited  bool   `json:"waited"`
}

type generatorJSON struct {
	CPUNS       int64      `json:"cpu_ns"`
	SpunNS      int64      `json:"spun_ns"` // of cpu_ns
	MaxRSSBytes uint64     `json:"max_rss_bytes"`
	Bound       bool       `json:"bound"`
	Lag         *timesJSON `json:"lag,omitempty"`
	Late        *timesJSON `json:"late,omitempty"`   // the generator's own part of lag
	Unread      *timesJSON `json:"unread,omitempty"` // how late the generator read answers
}

// MarshalJSON gives r in a shape that later versions keep: the keys are stable,
// new ones may come, "schema" grows when one changes its meaning. Times are in
// nanoseconds, rates in answers a second. A table of times is absent when
// nothing was recorded, and a quantile of it with fewer records than
// [hist.Needed] tells: 20 for p50, 1,000 for p99. A slice's are of what it has.
func (r *Result) MarshalJSON() ([]byte, error) {
	j := resultJSON{
		Schema: resultSchema, Started: r.Started, ElapsedNS: int64(r.Elapsed), Ended: r.Ended,
		Engine: r.Engine, Threads: r.Threads, Rate: answerRate(r),
		Counts: r.Counts.json(), WarmUp: r.WarmUp.json(),
		Response: tableOf(r.Response), Service: tableOf(r.Service), FirstByte: tableOf(r.FirstByte),
		Connect: tableOf(r.Connect), Handshake: tableOf(r.Handshake),
		BytesIn: r.BytesIn, BytesOut: r.BytesOut,
		Conns:      connectionJSON{Opened: r.Opened, Reused: r.Reused, Full: r.Full, Resumed: r.Resumed, Waited: r.Waited},
		MeanFlight: r.MeanFlight, PeakFlight: r.PeakFlight,
		Generator: generatorJSON{CPUNS: int64(r.CPU), SpunNS: int64(r.Spun), MaxRSSBytes: r.MaxRSS, Bound: r.Bound, Lag: tableOf(r.Lag), Late: tableOf(r.Late), Unread: tableOf(r.Unread)},
		Series:    append([]Slice{}, r.Series...), // never null
		Warnings:  texts(r.Warnings),
	}
	return json.Marshal(&j)
}

func (c Counts) json() countsJSON {
	j := countsJSON{Scheduled: c.Scheduled, Answered: c.Answered(), Status: map[string]uint64{},
		Refused: c.Refused, Reset: c.Reset, Timeout: c.Timeout, Short: c.Short, Malformed: c.Malformed,
		Dropped: c.Dropped, Unverified: c.Unverified}
	for class := 1; class < len(c.Status); class++ {
		j.Status[fmt.Sprintf("%dxx", class)] = c.Status[class]
	}
	return j
}

// tableOf is h's quantile table; nil when h is empty.
func tableOf(h *hist.Hist) *timesJSON {
	if h == nil || h.Count() == 0 {
		return nil
	}
	backed := func(q float64) *int64 {
		if h.Count() < hist.Needed(q) {
			return nil
		}
		v := h.Quantile(q)
		return &v
	}
	return &timesJSON{Count: h.Count(), MeanNS: h.Mean(), MaxNS: h.Max(),
		P50NS: backed(0.5), P75NS: backed(0.75), P90NS: backed(0.9), P95NS: backed(0.95),
		P99NS: backed(0.99), P999: backed(0.999), P9999: backed(0.9999)}
}

// WriteSeries writes r.Series as CSV with a header row, times in nanoseconds.
func (r *Result) WriteSeries(w io.Writer) error {
	cw := csv.NewWriter(w)
	cw.Write([]string{"at_ns", "answered", "failed", "dropped", "bytes_in", "p50_ns", "p99_ns", "max_ns"})
	for _, s := range r.Series {
		row := make([]string, 0, 8)
		for _, v := range []uint64{uint64(s.At), s.Answered, s.Failed, s.Dropped, s.BytesIn, uint64(s.P50), uint64(s.P99), uint64(s.Max)} {
			row = append(row, strconv.FormatUint(v, 10))
		}
		cw.Write(row)
	}
	cw.Flush()
	if err := cw.Error(); err != nil {
		return fmt.Errorf("writing series: %w", err)
	}
	return nil
}

type searchJSON struct {
	Schema    int      `json:"schema"`
	Threshold string   `json:"threshold"`
	Rate      float64  `json:"rate"`
	Confirmed bool     `json:"confirmed"`
	Ended     string   `json:"ended"`
	Probes    []Probe  `json:"probes"`
	Warnings  []string `json:"warnings"`
}

// MarshalJSON gives s in a shape that later versions keep, as Result's does.
func (s *SearchResult) MarshalJSON() ([]byte, error) {
	j := searchJSON{Schema: resultSchema, Threshold: s.Threshold, Rate: s.Rate, Confirmed: s.Confirmed,
		Ended: s.Ended, Probes: append([]Probe{}, s.Probes...), Warnings: texts(s.Warnings)}
	return json.Marshal(&j)
}

func texts(errs []error) []string {
	list := make([]string, len(errs))
	for i, err := range errs {
		list[i] = err.Error()
	}
	return list
}
