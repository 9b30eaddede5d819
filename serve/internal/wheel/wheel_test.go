package wheel_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/internal/wheel"
)

const unit = 10 * time.Nanosecond

// TestModel turns a wheel by many small and some long steps, and holds what is due to a map of
// times: nothing before its time, and all by the first turn that is not before it.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := wheel.New[int](unit)
		nodes := make([]wheel.Node[int], 200)
		want := map[int]int64{} // things in the wheel → when
		now := 1 + rnd.Int64N(1e6)
		w.Turn(now)
		far := func() int64 { return now + rnd.Int64N(1<<(1+rnd.IntN(31))) } // beyond the last level, too
		for step := range 3000 {
			i := rnd.IntN(len(nodes))
			at, held := want[i]
			switch k := rnd.IntN(8); {
			case !held && k < 4:
				want[i] = far()
				w.Add(&nodes[i], i, want[i])
			case held && k < 2:
				w.Remove(&nodes[i])
				delete(want, i)
			case held && k < 4:
				sooner := far()
				w.Hasten(&nodes[i], sooner)
				want[i] = min(at, max(sooner, 1))
			case k < 7:
				now += rnd.Int64N(30)
			default:
				now += rnd.Int64N(1 << rnd.IntN(20))
			}
			w.Turn(now)
			if err := takeDue(w, want, now, rnd); err != nil {
				t.Fatalf("seed %d, step %d, at %d: %v", seed, step, now, err)
			}
		}
	}
}

// takeDue takes what is due, checks it against want, and puts half of it back for later.
func takeDue(w *wheel.Wheel[int], want map[int]int64, now int64, rnd *rand.Rand) error {
	for n, i, ok := w.Next(); ok; n, i, ok = w.Next() {
		at, held := want[i]
		if !held || at > now {
			return fmt.Errorf("%d is due, want it at %d (%t)", i, at, held)
		}
		if rnd.IntN(2) == 0 {
			w.Remove(n)
			delete(want, i)
			w.PutBack(n, now+1)
			if n.At() != 0 {
				return fmt.Errorf("%d was removed and put back all the same", i)
			}
			continue
		}
		want[i] = now + 1 + rnd.Int64N(1<<rnd.IntN(20))
		w.PutBack(n, want[i])
		if n.At() != want[i] {
			return fmt.Errorf("%d is looked at at %d, want %d", i, n.At(), want[i])
		}
	}
	for i, at := range want {
		if at <= now {
			return fmt.Errorf("%d is not due, want it at %d", i, at)
		}
	}
	return nil
}

// TestAtOnce adds, hastens and removes from many goroutines while one turns: the race detector
// looks on, and everything that stays is looked at.
func TestAtOnce(t *testing.T) {
	w := wheel.New[int](unit)
	const each, hands = 500, 4
	nodes := make([]wheel.Node[int], each*hands)
	var adding sync.WaitGroup
	for h := range hands {
		adding.Go(func() {
			for i := h * each; i < (h+1)*each; i++ {
				w.Add(&nodes[i], i, int64(1000+i))
				w.Hasten(&nodes[i], int64(500+i))
				if i%2 == 0 {
					w.Remove(&nodes[i])
				}
			}
		})
	}
	looked := map[int]bool{}
	look := func(now int64) {
		w.Turn(now)
		for n, i, ok := w.Next(); ok; n, i, ok = w.Next() {
			looked[i] = true
			w.PutBack(n, now+1e6)
		}
	}
	for now := range int64(300) {
		look(now * 10)
	}
	adding.Wait()
	look(1e5)
	for i := range nodes {
		if held := nodes[i].At() != 0; held != (i%2 == 1) || held && !looked[i] {
			t.Fatalf("%d: held %t, looked at %t", i, held, looked[i])
		}
	}
}

// BenchmarkTurn turns a wheel that holds many things, few of which are due.
func BenchmarkTurn(b *testing.B) {
	for _, held := range []int{100, 50_000} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) {
			w := wheel.New[int](unit)
			nodes := make([]wheel.Node[int], held)
			for i := range nodes {
				w.Add(&nodes[i], i, 1+int64(i)*1e6)
			}
			now := int64(1)
			b.ReportAllocs()
			for b.Loop() {
				now += int64(unit)
				w.Turn(now)
				for n, _, ok := w.Next(); ok; n, _, ok = w.Next() {
					w.PutBack(n, now+1e9)
				}
			}
		})
	}
}
