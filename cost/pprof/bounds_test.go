package pprof_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/tarehq/tare/cost/pprof"
)

// bytesField is a field of a protocol buffer that holds bytes.
func bytesField(number int, body []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(number)<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(body))), body...)
}

// zipped compresses a text that is one piece so many times over: the piece, once.
func zipped(t *testing.T, piece []byte, times int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(piece); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.Repeat(b.Bytes(), times)
}

// endless repeats one byte for ever.
type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

// TestReadRefusesBombs gives little that would become much.
func TestReadRefusesBombs(t *testing.T) {
	const records = 4<<20 + 1
	column := append(bytesField(1, []byte{0x08, 1}), bytesField(6, nil)...)
	for _, tc := range []struct {
		name string
		in   []byte
	}{
		{"names", bytes.Repeat(bytesField(6, nil), records)},
		{"packed names", zipped(t, bytes.Repeat(bytesField(6, nil), records), 1)},
		{"labels", bytesField(2, bytes.Repeat(bytesField(3, nil), records))},
		{"lines", bytesField(4, bytes.Repeat(bytesField(4, nil), records))},
		{"places", bytesField(2, bytesField(1, make([]byte, 16<<20+1)))},
		{"columns", bytes.Repeat(column, 65)},
		{"inlined", inlined(t, 4096, 8192)},
		{"packed blanks", append(zipped(t, bytes.Repeat([]byte(" "), 1<<20), 128), zipped(t, []byte(" "), 1)...)},
	} {
		if _, err := pprof.Read(bytes.NewReader(tc.in)); !errors.Is(err, pprof.ErrTooLarge) {
			t.Errorf("%s: error %v, want %v", tc.name, err, pprof.ErrTooLarge)
		}
	}
}

// inlined is a CPU profile of one stack with one place a number of times, into
// which a number of functions were inlined.
func inlined(t *testing.T, times, lines int) []byte {
	t.Helper()
	fn := &profile.Function{ID: 1, Name: "main.main"}
	at := &profile.Location{ID: 1, Line: slices.Repeat([]profile.Line{{Function: fn}}, lines)}
	raw := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Location: slices.Repeat([]*profile.Location{at}, times), Value: []int64{1, 1}}},
		Location:   []*profile.Location{at},
		Function:   []*profile.Function{fn},
	}
	var b bytes.Buffer
	if err := raw.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReadRefusesCut cuts a profile anywhere but at its end: none may be read as
// if it were whole in form.
func TestReadRefusesCut(t *testing.T) {
	whole := written(t, 3, 30, time.Second)
	plain, err := gzip.NewReader(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if _, err := pprof.Read(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("the first %d of %d packed bytes were read", n, len(whole))
		}
	}
	if _, err := pprof.Read(bytes.NewReader(unpacked)); err != nil {
		t.Errorf("an unpacked profile: %v", err)
	}
	if _, err := pprof.Read(bytes.NewReader(unpacked[:len(unpacked)-1])); err == nil {
		t.Error("an unpacked profile without its last byte was read")
	}
}

// written is a CPU profile of one stack.
func written(t *testing.T, count, ns int64, d time.Duration) []byte {
	t.Helper()
	fn := &profile.Function{ID: 1, Name: "main.main"}
	at := &profile.Location{ID: 1, Line: []profile.Line{{Function: fn}}}
	raw := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample:        []*profile.Sample{{Location: []*profile.Location{at}, Value: []int64{count, ns}}},
		Location:      []*profile.Location{at},
		Function:      []*profile.Function{fn},
		DurationNanos: int64(d),
	}
	var b bytes.Buffer
	if err := raw.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadRefusesImplausible(t *testing.T) {
	for _, tc := range []struct {
		name      string
		count, ns int64
		d         time.Duration
		err       error
	}{
		{"plain", 3, 30_000_000, time.Second, nil},
		{"of no time", 3, 30_000_000, 0, nil},
		{"negative values", 3, -30_000_000, time.Second, pprof.ErrImplausible},
		{"negative counts", -3, 30_000_000, time.Second, pprof.ErrImplausible},
		{"the least values", -1 << 63, -1 << 63, time.Second, pprof.ErrImplausible},
		{"the largest values", 1<<63 - 1, 1<<63 - 1, time.Second, pprof.ErrImplausible},
		{"negative time", 3, 30_000_000, -7, pprof.ErrImplausible},
		{"the longest time", 3, 30_000_000, 1<<63 - 1, pprof.ErrImplausible},
	} {
		if _, err := pprof.Read(bytes.NewReader(written(t, tc.count, tc.ns, tc.d))); !errors.Is(err, tc.err) {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.err)
		}
	}
}

// TestReadAllowsRounding keeps the difference of two profiles in which a few
// stacks came out a little less than nothing.
func TestReadAllowsRounding(t *testing.T) {
	for _, tc := range []struct {
		less int64
		err  error
	}{{1, nil}, {500, pprof.ErrImplausible}, {1000, pprof.ErrImplausible}} {
		fn := &profile.Function{ID: 1, Name: "main.main"}
		at := &profile.Location{ID: 1, Line: []profile.Line{{Function: fn}}}
		raw := &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}},
			Sample:     []*profile.Sample{{Location: []*profile.Location{at}, Value: []int64{10, 1000}}, {Location: []*profile.Location{at}, Value: []int64{0, -tc.less}}},
			Location:   []*profile.Location{at},
			Function:   []*profile.Function{fn},
		}
		var b bytes.Buffer
		if err := raw.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := pprof.Read(&b); !errors.Is(err, tc.err) {
			t.Errorf("1000 bytes and -%d: error %v, want %v", tc.less, err, tc.err)
		}
	}
}

// TestServiceOfAnotherTime has a service hand over profiles of other times than it
// was asked for.
func TestServiceOfAnotherTime(t *testing.T) {
	for _, tc := range []struct {
		of  time.Duration
		err error
	}{
		{0, nil}, {2 * time.Second, nil}, {3 * time.Second, nil},
		{500 * time.Millisecond, pprof.ErrImplausible}, {time.Hour, pprof.ErrImplausible},
	} {
		answer := written(t, 3, 30_000_000, tc.of)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(answer) }))
		_, err := find(t, srv.URL).CPU(context.Background(), 2*time.Second)
		srv.Close()
		if !errors.Is(err, tc.err) {
			t.Errorf("2 s asked for, %s handed over: error %v, want %v", tc.of, err, tc.err)
		}
	}
}

// TestServiceEndless reads from a service that never stops sending.
func TestServiceEndless(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.Copy(w, endless('a'))
	}))
	defer srv.Close()
	s := find(t, srv.URL)
	if _, err := s.Goroutines(context.Background()); !errors.Is(err, pprof.ErrTooLarge) {
		t.Errorf("profile: error %v, want %v", err, pprof.ErrTooLarge)
	}
	var to bytes.Buffer
	if err := pprof.TraceTo(context.Background(), s, &to, 1<<20); !errors.Is(err, pprof.ErrTooLarge) {
		t.Errorf("trace: error %v, want %v", err, pprof.ErrTooLarge)
	}
	if to.Len() > 1<<20+1 {
		t.Errorf("%d bytes of the trace were written, want 1 MiB", to.Len())
	}
}
