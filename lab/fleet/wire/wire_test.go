package wire_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// Every field of a result comes to the coordinator, but for the series, which came before.
func TestResultTravels(t *testing.T) {
	r := new(load.Result)
	n := 0
	fillIn(reflect.ValueOf(r).Elem(), &n)
	r.Started = time.Now()
	r.Warnings = load.Warnings{errors.New("late")}
	r.Series = nil
	sent := wire.PackResult(r, r.Started.Add(-time.Minute))
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	m := &wire.Message{Hists: sent.Hists}
	if err := json.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	got, err := wire.UnpackResult(m, r.Started.Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if d := got.Started.Sub(r.Started); d != 0 {
		t.Errorf("started %v off", d)
	}
	if len(got.Warnings) != 1 || got.Warnings[0].Error() != "late" {
		t.Errorf("warnings %q, want %q", got.Warnings, r.Warnings)
	}
	got.Started, got.Warnings = r.Started, r.Warnings
	if !reflect.DeepEqual(got, r) {
		t.Errorf("got  %+v\nwant %+v", got, r)
	}
}

// fillIn sets every number, truth, text and histogram within v to one of its own.
func fillIn(v reflect.Value, n *int) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[*hist.Hist]():
		h := hist.New()
		h.Record(int64(*n))
		v.Set(reflect.ValueOf(h))
	case v.Type() == reflect.TypeFor[time.Time]():
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fillIn(v.Field(i), n)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fillIn(v.Index(i), n)
		}
	case v.CanInt():
		v.SetInt(int64(*n))
	case v.CanUint():
		v.SetUint(uint64(*n))
	case v.CanFloat():
		v.SetFloat(float64(*n))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprint(*n))
	}
}

// pair are the two ends of a link.
func pair(t testing.TB) (a, b *wire.Link) {
	t.Helper()
	x, y := net.Pipe()
	a, b = wire.NewLink(x, 1<<20), wire.NewLink(y, 1000)
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	return a, b
}

// Messages come with their histograms, in order, signs of life among them. One that is too
// large is passed over.
func TestLink(t *testing.T) {
	a, b := pair(t)
	part := wire.Part{Elapsed: -1, Total: 2, Rate: 1.5, Flight: 3, Counts: wire.Tally{4, 5, 6}, Slices: []load.Slice{{At: 1, Answered: 2, Failed: 3, Dropped: 4, BytesIn: 5, P50: 6, P99: 7, Max: 8}, {}}, Final: true}
	sent := make(chan error, 1)
	go func() {
		sent <- errors.Join(
			a.Send(&wire.Message{Kind: wire.KindPart, Part: &part, Hists: [][]byte{{1, 2}, {}, {3}}}),
			a.Send(&wire.Message{Kind: wire.KindFail, Text: strings.Repeat("x", 300_000)}),
			a.Send(&wire.Message{Kind: wire.KindStop}),
		)
	}()
	m, err := b.Receive()
	if err != nil || m.Kind != wire.KindPart || fmt.Sprint(m.Hists) != "[[1 2] [] [3]]" || !reflect.DeepEqual(*m.Part, part) {
		t.Errorf("got %+v, %v; want the part %+v with three histograms", m, err, part)
	}
	if m, err := b.Receive(); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("got %+v, %v; want ErrTooLarge", m, err)
	}
	if m, err := b.Receive(); err != nil || m.Kind != wire.KindStop {
		t.Errorf("got %+v, %v; want what was sent next", m, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := a.Send(&wire.Message{Kind: wire.KindFail, Text: strings.Repeat("x", wire.MostFrame)}); err == nil {
		t.Error("a frame beyond the largest was sent")
	}
}

// Who says nothing is given up, and who gives signs of life is not. Signs are given where nothing
// else is sent, and no others.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := pair(t)
		begun := time.Now()
		if _, err := b.Receive(); !errors.Is(err, wire.ErrSilent) || time.Since(begun) != wire.Silence {
			t.Errorf("after %v: %v, want ErrSilent after %v", time.Since(begun), err, wire.Silence)
		}
		a, b := pair(t)
		a.Living.Store(true)
		go a.KeepAlive()
		time.AfterFunc(10*wire.Beat, func() { _ = a.Send(&wire.Message{Kind: wire.KindStop}) })
		if m, err := b.Receive(); err != nil || m.Kind != wire.KindStop {
			t.Errorf("got %+v, %v; want the message behind the signs of life", m, err)
		}
	})
}

// Signs of life are frames, each eight bytes long: of a peer that sends every second there are
// none.
func TestSigns(t *testing.T) {
	const signBytes = 8
	for every, want := range map[time.Duration]int{time.Second: 0, 2 * time.Second: 5, time.Hour: 10} {
		synctest.Test(t, func(t *testing.T) {
			x, y := net.Pipe()
			a := wire.NewLink(x, 1000)
			a.Living.Store(true)
			go a.KeepAlive()
			signs := make(chan int)
			go func() {
				n, b := 0, make([]byte, 1000)
				for {
					got, err := y.Read(b)
					if err != nil {
						signs <- n
						return
					}
					if got == signBytes {
						n++
					}
				}
			}()
			for until := time.Now().Add(10*wire.Beat + wire.Beat/2); time.Now().Before(until); {
				time.Sleep(min(every, time.Until(until)))
				_ = a.Send(&wire.Message{Kind: wire.KindStop})
			}
			a.Close()
			if got := <-signs; got != want {
				t.Errorf("a message every %v: %d signs of life in %v, want %d", every, got, 10*wire.Beat, want)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	for _, want := range []error{wire.ErrVersion, wire.ErrBusy, wire.ErrNotAllowed} {
		err := wire.Refused(wire.Refusal(fmt.Errorf("%w: so it is", want)))
		if !errors.Is(err, want) || err.Error() != want.Error()+": so it is" {
			t.Errorf("got %v, want %v and why", err, want)
		}
	}
	if err := wire.Refused(wire.Refusal(errors.New("no"))); err == nil || err.Error() != "no" {
		t.Errorf("got %v, want no", err)
	}
}

// Whatever bytes come, receiving ends without a panic, and takes no more than a frame may have.
func FuzzReceive(f *testing.F) {
	frame := func(text string, hists ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(4+len(text)+len(hists)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		return append(append(b, text...), hists...)
	}
	f.Add(frame(""))
	f.Add(frame(`{"kind":"part","lengths":[1,1]}`, 0, 0))
	f.Add(frame(`{"kind":"job","job":{"Targets":[{"URL":"x"}],"TLS":{},"Progress":{}}}`))
	f.Add(append(frame("", 1), frame(`{"lengths":[-1,99999999999]}`)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, y := net.Pipe()
		l := wire.NewLink(y, 1000)
		defer l.Close()
		go func() {
			_, _ = x.Write(b) // as much as is read
			x.Close()
		}()
		for {
			m, err := l.Receive()
			if errors.Is(err, wire.ErrTooLarge) {
				continue
			}
			if err != nil {
				return
			}
			_, _ = wire.UnpackResult(m, time.Now()) // whether it is one or not
		}
	})
}
