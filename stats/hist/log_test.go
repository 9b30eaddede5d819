package hist_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"github.com/tarehq/tare/stats/hist"
)

func writeLog(t testing.TB, entries ...hist.Entry) string {
	t.Helper()
	var b bytes.Buffer
	if err := hist.WriteLog(&b, entries); err != nil {
		t.Fatalf("WriteLog: %v", err)
	}
	return b.String()
}

// TestPeerReads has HdrHistogram's own reader read what WriteLog wrote.
func TestPeerReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h, peer := hist.New(), hdr.New(1, hist.Highest, 3)
	for range 20_000 {
		v := int64(rng.ExpFloat64() * 1e6)
		h.Record(v)
		if err := peer.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	start := time.UnixMilli(1_700_000_000_123)
	text := writeLog(t,
		hist.Entry{Tag: "response", Start: start, Length: 2 * time.Second, Hist: h},
		hist.Entry{Start: start.Add(time.Second), Hist: hist.New()},
		hist.Entry{Tag: "undated", Hist: h})
	r := hdr.NewHistogramLogReader(strings.NewReader(text))
	for i, want := range []struct {
		tag        string
		start, end int64
		peer       *hdr.Histogram
	}{
		{"response", start.UnixMilli(), start.UnixMilli() + 2000, peer},
		{"", start.UnixMilli() + 1000, start.UnixMilli() + 1000, hdr.New(1, hist.Highest, 3)},
		{"undated", 0, 0, peer},
	} {
		got, err := r.NextIntervalHistogram()
		if err != nil || got == nil {
			t.Fatalf("entry %d: HdrHistogram reads %v, %v", i, got, err)
		}
		if !got.Equals(want.peer) {
			t.Errorf("entry %d: HdrHistogram reads other counts than it recorded itself", i)
		}
		if got.Tag() != want.tag || got.StartTimeMs() != want.start || got.EndTimeMs() != want.end {
			t.Errorf("entry %d: HdrHistogram reads tag %q from %d to %d, want %q from %d to %d", i,
				got.Tag(), got.StartTimeMs(), got.EndTimeMs(), want.tag, want.start, want.end)
		}
	}
	for _, q := range []float64{50, 90, 99, 99.9} {
		if got, want := h.Quantile(q/100), peer.ValueAtQuantile(q); got != want {
			t.Errorf("p%v = %d, HdrHistogram says %d", q, got, want)
		}
	}
}

// TestReadsPeer reads logs that HdrHistogram's own writer wrote.
func TestReadsPeer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := values(100).Draw(t, "values")
		want := record(vs...)
		highest := max(want.Max(), rapid.Int64Range(2, math.MaxInt64/4).Draw(t, "highest"))
		peer := hdr.New(1, highest, 3)
		for _, v := range vs {
			if err := peer.RecordValue(v); err != nil {
				t.Fatal(err)
			}
		}
		peer.SetStartTimeMs(1_700_000_000_500)
		peer.SetEndTimeMs(1_700_000_003_000)
		peer.SetTag("a")
		var b bytes.Buffer
		if err := hdr.NewHistogramLogWriter(&b).OutputIntervalHistogram(peer); err != nil {
			t.Fatal(err)
		}
		got, err := hist.ReadLog(&b)
		if err != nil || len(got) != 1 {
			t.Fatalf("ReadLog of %v: %d entries, %v", vs, len(got), err)
		}
		e := got[0]
		if !slices.Equal(counts(e.Hist), counts(want)) || !e.Hist.Equal(want) {
			t.Fatalf("ReadLog of %v: other counts", vs)
		}
		if e.Tag != "a" || e.Start.UnixMilli() != 1_700_000_000_500 || e.Length != 2500*time.Millisecond {
			t.Fatalf("ReadLog: tag %q, start %v, length %v", e.Tag, e.Start, e.Length)
		}
	})
}

func TestLogRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := record(values(100).Draw(t, "values")...)
		h.RecordN(5, rapid.Uint64Range(0, 1<<60).Draw(t, "n"))
		start := time.Unix(0, rapid.Int64Range(1, math.MaxInt64).Draw(t, "start"))
		length := time.Duration(rapid.Int64Min(0).Draw(t, "length"))
		in := []hist.Entry{{Tag: "a", Start: start, Length: length, Hist: h}, {Hist: hist.New()}}
		var b bytes.Buffer
		if err := hist.WriteLog(&b, in); err != nil {
			t.Fatal(err)
		}
		out, err := hist.ReadLog(&b)
		if err != nil || len(out) != len(in) {
			t.Fatalf("ReadLog: %d entries, %v", len(out), err)
		}
		for i, e := range out {
			if e.Tag != in[i].Tag || !e.Start.Equal(in[i].Start) || e.Length != in[i].Length || !e.Hist.Equal(in[i].Hist) {
				t.Fatalf("entry %d: read %+v, want %+v", i, e, in[i])
			}
		}
		got := out[0].Hist
		if got.Max() != h.Max() || got.Min() > h.Min() || math.Abs(got.Mean()-h.Mean()) > h.Mean()/1000 {
			t.Fatalf("read max %d, min %d, mean %v, want %d, %d, %v", got.Max(), got.Min(), got.Mean(), h.Max(), h.Min(), h.Mean())
		}
	})
}

// TestRelativeTimes follows the convention for logs without a base time.
func TestRelativeTimes(t *testing.T) {
	line := body(t, writeLog(t, hist.Entry{Start: time.Unix(2, 5e8), Hist: record(1)}))
	for _, c := range []struct {
		head string
		want time.Time
	}{
		{"", time.Unix(2, 5e8)},
		{"#[StartTime: 1700000000.125 (seconds since epoch), Tue]\n", time.Unix(1_700_000_002, 625e6)},
		{"#[StartTime: 3.000 (seconds since epoch), Thu]\n", time.Unix(2, 5e8)},
		{"#[StartTime: 1700000000 (seconds since epoch)]\n#[BaseTime: 0 (seconds since epoch)]\n", time.Unix(2, 5e8)},
		{"#[BaseTime: 100.5 (seconds since epoch)]\n", time.Unix(103, 0)},
	} {
		got, err := hist.ReadLog(strings.NewReader(c.head + line))
		if err != nil || len(got) != 1 || !got[0].Start.Equal(c.want) {
			t.Errorf("after %q: %+v, %v, want a start at %v", c.head, got, err, c.want)
		}
	}
}

// body is the last line of a log.
func body(t testing.TB, log string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return lines[len(lines)-1]
}

// v2 packs a payload as a log's last field. size is what the header says.
func v2(payload []byte, size int, digits uint32, lowest uint64) string {
	be := binary.BigEndian
	b := be.AppendUint32(nil, 0x1c849313)
	b = be.AppendUint32(b, uint32(size))
	b = be.AppendUint32(b, 0)
	b = be.AppendUint32(b, digits)
	b = be.AppendUint64(b, lowest)
	b = be.AppendUint64(b, uint64(hist.Highest))
	b = be.AppendUint64(b, math.Float64bits(1))
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(append(b, payload...))
	_ = w.Close()
	out := be.AppendUint32(nil, 0x1c849314)
	out = be.AppendUint32(out, uint32(z.Len()))
	return base64.StdEncoding.EncodeToString(append(out, z.Bytes()...))
}

func TestReadLogRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"Tag=x", "fields"},
		{"1,2", "fields"},
		{"x,1,2,3", "number of seconds"},
		{",1,2,3", "number of seconds"},
		{"NaN,1,2,3", "number of seconds"},
		{"-1,1,2,3", "number of seconds"},
		{"1,99999999999999999999,2,3", "number of seconds"},
		{"Tag=a b,1,2,3,4", "tag"},
		{"#[BaseTime: x]", "number of seconds"},
		{"1,2,3,!!!", "base64"},
		{"1,2,3,aGFsbG8=", "not a compressed V2"},
		{"1,2,3," + v2(nil, 1, 3, 1), "says that it has 1"},
		{"1,2,3," + v2(nil, 0, 2, 1), "2 digits"},
		{"1,2,3," + v2(nil, 0, 3, 1000), "from 1000"},
		{"1,2,3," + v2([]byte{0x80}, 1, 3, 1), "ends within"},
		{"1,2,3," + v2([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9, 3, 1), "more than the"},
		{"1,2,3," + v2(bytes.Repeat([]byte{0}, 40_000), 40_000, 3, 1), "more than the"},
		{"1,2,3," + v2(bytes.Repeat([]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 2), 18, 3, 1), "add up"},
		{"1,2,3," + v2(make([]byte, 1<<20), 1<<20, 3, 1), "inflates"},
		{"9000000000,1,2," + v2(nil, 0, 3, 1) + "\n#[BaseTime: 9000000000 (seconds since epoch)]\n9000000000,1,2," + v2(nil, 0, 3, 1), "line 3: starts too far"},
		{strings.Repeat("1", 2<<20), "line 1: "},
	} {
		got, err := hist.ReadLog(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ReadLog(%.60q) = %v, %v, want an error with %q", c.in, got, err, c.want)
		}
	}
}

// TestReadLogIsBounded reads a log whose short lines all unfold to the largest
// histogram.
func TestReadLogIsBounded(t *testing.T) {
	line := "1,2,3," + v2(bytes.Repeat([]byte{2}, 33*1024), 33*1024, 3, 1) + "\n"
	if len(line) > 400 {
		t.Fatalf("the line has %d bytes, want a short one", len(line))
	}
	got, err := hist.ReadLog(io.LimitReader(repeat(line), 1<<20))
	if err == nil || !strings.Contains(err.Error(), "more histograms than") {
		t.Errorf("ReadLog = %d entries, %v, want it to give up", len(got), err)
	}
}

// repeat reads as text over and over.
type repeat string

func (r repeat) Read(b []byte) (n int, err error) {
	for n+len(r) <= len(b) {
		n += copy(b[n:], r)
	}
	return n, nil
}

func TestWriteLogRefuses(t *testing.T) {
	for _, e := range []hist.Entry{
		{Tag: "a,b", Hist: record(1)},
		{Tag: "a\nb", Hist: record(1)},
		{Start: time.Unix(-1, 0), Hist: record(1)},
		{Length: -1, Hist: record(1)},
		{},
	} {
		if err := hist.WriteLog(io.Discard, []hist.Entry{e}); err == nil {
			t.Errorf("WriteLog(%+v): no error", e)
		}
	}
	if err := hist.WriteLog(brokenWriter{}, []hist.Entry{{Hist: record(1)}}); err == nil {
		t.Error("WriteLog to a broken writer: no error")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, fmt.Errorf("broken") }

func FuzzReadLog(f *testing.F) {
	f.Add([]byte(writeLog(f, hist.Entry{Tag: "t", Start: time.UnixMilli(5), Length: 1, Hist: record(1, 5000, 1e9)})))
	f.Add([]byte("Tag=a,1,2,3,HISTFAAAAA=="))
	f.Add([]byte("#[StartTime: 1700000000.5 (seconds since epoch)]\n0.1,2,3.5," + v2([]byte{2, 1, 4}, 3, 3, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := hist.ReadLog(bytes.NewReader(data))
		if err != nil {
			return
		}
		// What was read can be written, and is read the same again.
		again, err := hist.ReadLog(strings.NewReader(writeLog(t, entries...)))
		if err != nil || len(again) != len(entries) {
			t.Fatalf("reading back: %d of %d entries, %v", len(again), len(entries), err)
		}
		for i, e := range again {
			if want := entries[i]; !e.Hist.Equal(want.Hist) || e.Tag != want.Tag || !e.Start.Equal(want.Start) || e.Length != want.Length {
				t.Errorf("entry %d: read back %+v, want %+v", i, e, want)
			}
		}
	})
}
