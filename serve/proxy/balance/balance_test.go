package balance_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/tarehq/tare/serve/proxy/balance"
)

func Example() {
	p := balance.RoundRobin([]int{3, 1})
	var none balance.Skip
	var got [2]int
	for range 8 {
		got[p.Pick(0, &none)]++
	}
	fmt.Println(got)
	// Output: [6 2]
}

// TestWeights has every policy keep to the weights while all targets are idle.
func TestWeights(t *testing.T) {
	weights := []int{5, 1, 0, 2, 100}
	names := []string{"a", "b", "c", "d", "e"}
	targets := make([]*balance.Target, len(weights))
	for i := range targets {
		targets[i] = &balance.Target{}
	}
	total := 108
	for name, p := range map[string]balance.Policy{
		"round robin":    balance.RoundRobin(weights),
		"least requests": balance.LeastRequests(targets, weights),
		"peak EWMA":      balance.PeakEWMA(targets, weights),
		"Maglev":         balance.Maglev(names, weights),
	} {
		const n = 200_000
		got := make([]int, len(weights))
		var none balance.Skip
		for i := range n {
			got[p.Pick(balance.Hash(strconv.Itoa(i)), &none)]++
		}
		for i, w := range weights {
			want := float64(n) * float64(w) / float64(total)
			if off := math.Abs(float64(got[i]) - want); off > want*0.12 {
				t.Errorf("%s: target %d of weight %d got %d requests, want %.0f", name, i, w, got[i], want)
			}
		}
	}
}

// TestSkip has no policy choose what is to be skipped, and each say so when that is all.
func TestSkip(t *testing.T) {
	weights := []int{1, 1, 1, 0}
	targets := []*balance.Target{{}, {}, {}, {}}
	policies := map[string]balance.Policy{
		"round robin":    balance.RoundRobin(weights),
		"least requests": balance.LeastRequests(targets, weights),
		"peak EWMA":      balance.PeakEWMA(targets, weights),
		"Maglev":         balance.Maglev([]string{"a", "b", "c", "d"}, weights),
	}
	for name, p := range policies {
		var skip balance.Skip
		for left := 3; left > 0; left-- {
			seen := map[int]bool{}
			for i := range 2000 {
				at := p.Pick(balance.Hash(strconv.Itoa(i)), &skip)
				if at < 0 || at == 3 || skip.Has(at) {
					t.Fatalf("%s: got target %d, which is to be skipped", name, at)
				}
				seen[at] = true
			}
			if len(seen) != left {
				t.Errorf("%s: %d targets were chosen, want %d", name, len(seen), left)
			}
			skip.Add(left - 1)
		}
		if got := p.Pick(1, &skip); got != -1 {
			t.Errorf("%s: got target %d, want none", name, got)
		}
	}
	for name, p := range map[string]balance.Policy{"round robin": balance.RoundRobin(nil), "Maglev": balance.Maglev(nil, nil), "two": balance.PeakEWMA(nil, nil)} {
		var none balance.Skip
		if got := p.Pick(1, &none); got != -1 {
			t.Errorf("%s without targets: got %d", name, got)
		}
	}
}

// TestLeastRequests has the busier of two targets left alone.
func TestLeastRequests(t *testing.T) {
	targets := []*balance.Target{{}, {}}
	p := balance.LeastRequests(targets, []int{1, 1})
	targets[0].Begin()
	var none balance.Skip
	busy := 0
	for range 1000 {
		if p.Pick(0, &none) == 0 {
			busy++
		}
	}
	if busy > 150 { // drawn four times in a row
		t.Errorf("the busy target got %d of 1000 requests", busy)
	}
}

// TestPeakEWMA has the slower of two targets left alone, and come back by and by.
func TestPeakEWMA(t *testing.T) {
	targets := []*balance.Target{{}, {}}
	p := balance.PeakEWMA(targets, []int{1, 1})
	now := time.Unix(1000, 0)
	targets[0].Observe(time.Second, now)
	targets[1].Observe(10*time.Millisecond, now)
	count := func() (slow int) {
		var none balance.Skip
		for range 1000 {
			if p.Pick(0, &none) == 0 {
				slow++
			}
		}
		return slow
	}
	if got := count(); got > 150 {
		t.Errorf("the slow target got %d of 1000 requests", got)
	}
	targets[0].Observe(time.Millisecond, now.Add(10*time.Millisecond))
	if got := count(); got > 150 {
		t.Errorf("after one fast answer the slow target got %d of 1000 requests", got)
	}
	targets[0].Observe(time.Millisecond, now.Add(5*time.Minute))
	if got := count(); got < 850 {
		t.Errorf("long after it the target got %d of 1000 requests", got)
	}
}

// TestMaglevMoves has few keys move when a target goes, and none when nothing changes.
func TestMaglevMoves(t *testing.T) {
	names := []string{"a:1", "b:1", "c:1", "d:1", "e:1"}
	weights := []int{1, 1, 1, 1, 1}
	whole, same := balance.Maglev(names, weights), balance.Maglev(names, weights)
	less := balance.Maglev(names[:4], weights[:4])
	var none, gone balance.Skip
	gone.Add(4)
	moved, others := 0, 0
	const n = 100_000
	for i := range n {
		key := balance.Hash("user " + strconv.Itoa(i))
		was := whole.Pick(key, &none)
		if same.Pick(key, &none) != was {
			t.Fatal("two tables of the same targets differ")
		}
		if skipped := whole.Pick(key, &gone); was != 4 && skipped != was {
			t.Fatalf("a key moved from %d to %d when another target was skipped", was, skipped)
		}
		if now := less.Pick(key, &none); was != 4 {
			others++
			if now != was {
				moved++
			}
		}
	}
	if share := float64(moved) / float64(others); share > 0.1 {
		t.Errorf("%.1f %% of the other targets' keys moved", share*100)
	}
}

// TestSpread has a table give each of many targets its share.
func TestSpread(t *testing.T) {
	names, weights := make([]string, balance.Most), make([]int, balance.Most)
	for i := range names {
		names[i], weights[i] = fmt.Sprintf("10.0.0.%d:80", i), 1
	}
	p := balance.Maglev(names, weights)
	got := make([]int, balance.Most)
	var none balance.Skip
	const n = 1_000_000
	for i := range uint64(n) {
		got[p.Pick(balance.Hash(strconv.FormatUint(i, 16)), &none)]++
	}
	for i, c := range got {
		if c < n/balance.Most*8/10 || c > n/balance.Most*12/10 {
			t.Errorf("target %d got %d of %d keys", i, c, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	weights := []int{1, 1, 1}
	targets := []*balance.Target{{}, {}, {}}
	for name, p := range map[string]balance.Policy{
		"round-robin":    balance.RoundRobin(weights),
		"least-requests": balance.LeastRequests(targets, weights),
		"peak-ewma":      balance.PeakEWMA(targets, weights),
		"maglev":         balance.Maglev([]string{"a", "b", "c"}, weights),
	} {
		b.Run("policy="+name, func(b *testing.B) {
			b.ReportAllocs()
			var none balance.Skip
			key := uint64(0)
			for b.Loop() {
				key += 7919
				p.Pick(key, &none)
			}
		})
	}
}
