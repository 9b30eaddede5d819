package main

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestEnd(t *testing.T) {
	s := service{stall: 1000 * ms, every: 10_000 * ms} // from 5 s to 6 s, 15 s to 16 s …
	for _, c := range []struct{ at, work, want time.Duration }{
		{0, 1 * ms, 1 * ms},
		{4000 * ms, 1000 * ms, 5000 * ms},           // done as the stall begins
		{4999 * ms, 3 * ms, 6002 * ms},              // 1 ms before it, 2 ms after
		{5000 * ms, 1 * ms, 6001 * ms},              // all of it after
		{5999 * ms, 1 * ms, 6001 * ms},              //
		{6000 * ms, 1 * ms, 6001 * ms},              //
		{14_999 * ms, 1000 * ms, 16_999 * ms},       // the next stall
		{4000 * ms, 20_000 * ms, 27_000 * ms},       // three stalls on the way
		{5500 * ms, 9000 * ms, 15_000 * ms},         // from within one to the next
		{5500 * ms, 9001 * ms, 16_001 * ms},         // and beyond
		{10_005_000 * ms, 50 * ms, 10_006_050 * ms}, // after many
	} {
		if got := s.end(c.at, c.work); got != c.want {
			t.Errorf("%v of work begun at %v ends at %v, want %v", c.work, c.at, got, c.want)
		}
	}
	if got := (service{every: time.Second}).end(5*time.Second, ms); got != 5001*ms {
		t.Errorf("without stalls, 1ms begun at 5s ends at %v", got)
	}
}

// TestEndKeepsWork counts the milliseconds outside stalls one by one.
func TestEndKeepsWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := rapid.IntRange(1, 25).Draw(t, "half period")
		stall := rapid.IntRange(1, 2*half-1).Draw(t, "stall")
		at, work := rapid.IntRange(0, 300).Draw(t, "at"), rapid.IntRange(1, 100).Draw(t, "work")
		want := at
		for left := work; left > 0; want++ {
			if since := want - half; since < 0 || since%(2*half) >= stall {
				left--
			}
		}
		s := service{stall: ms * time.Duration(stall), every: 2 * ms * time.Duration(half)}
		if got := s.end(ms*time.Duration(at), ms*time.Duration(work)); got != ms*time.Duration(want) {
			t.Fatalf("%d of work begun at %d, stalls of %d in %d, ends at %v, want %d", work, at, stall, 2*half, got, want)
		}
	})
}

func TestHeld(t *testing.T) {
	s := service{work: ms, slow: 50 * ms, share: 0.01}
	const n = 1_000_000
	slow := 0.0
	for i := range uint64(n) {
		switch s.held(i + 1) {
		case s.slow:
			slow++
		case s.work:
		default:
			t.Fatalf("request %d is held %v", i+1, s.held(i+1))
		}
	}
	if sd := math.Sqrt(n * s.share * (1 - s.share)); math.Abs(slow-n*s.share) > 4*sd {
		t.Errorf("%v of %d requests are slow, want about %v", slow, n, n*s.share)
	}
	for i := range uint64(1000) {
		if got := (service{work: ms, slow: 50 * ms}).held(i); got != ms {
			t.Fatalf("without slow ones request %d is held %v", i, got)
		}
		if got := (service{work: ms, slow: 50 * ms, share: 1}).held(i); got != 50*ms {
			t.Fatalf("with none but slow ones request %d is held %v", i, got)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, s := range []service{
		{work: -1},
		{slow: -1},
		{share: 1.1},
		{share: math.NaN()},
		{stall: time.Second, every: time.Second},
	} {
		if s.validate() == nil {
			t.Errorf("validate(%+v) = nil, want an error", s)
		}
	}
	if err := (service{work: ms, stall: time.Second, every: 10 * time.Second}).validate(); err != nil {
		t.Error(err)
	}
}
