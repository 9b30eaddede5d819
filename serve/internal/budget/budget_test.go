package budget_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/serve/internal/budget"
)

// spend takes what there is.
func spend(b *budget.Budget, share float64) (n int) {
	for b.Spend(share) {
		n++
	}
	return n
}

// TestBudget has a budget begin full, gain by requests and by time, and hold no more than
// it may.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget.Budget{Most: 10, Each: time.Second}
		b.Fill()
		if got := spend(b, 0.1); got != 10 {
			t.Errorf("a full one had %d attempts, want 10", got)
		}
		for range 30 {
			b.Earn(0.1)
		}
		if got := spend(b, 0.1); got != 3 {
			t.Errorf("30 requests earned %d attempts, want 3", got)
		}
		time.Sleep(2500 * time.Millisecond)
		if got := spend(b, 0.1); got != 2 {
			t.Errorf("2.5 s gave %d attempts, want 2", got)
		}
		time.Sleep(500 * time.Millisecond)
		if got := spend(b, 0.1); got != 1 {
			t.Errorf("the second half of a second gave %d attempts, want 1", got)
		}
		time.Sleep(time.Hour)
		for range 1000 {
			b.Earn(1)
		}
		if got := spend(b, 0.1); got != 10 {
			t.Errorf("after an hour there were %d attempts, want 10", got)
		}
		b.Fill()
		if b.Spend(0) || b.Spend(-1) {
			t.Error("an attempt was spent where requests earn none")
		}
	})
}

// TestTogether has many spend what there is, and no more.
func TestTogether(t *testing.T) {
	b := &budget.Budget{Most: 1000}
	b.Fill()
	var got atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { got.Add(int64(spend(b, 0.2))) })
	}
	all.Wait()
	if got.Load() != 1000 {
		t.Errorf("%d attempts were spent, want 1000", got.Load())
	}
}
