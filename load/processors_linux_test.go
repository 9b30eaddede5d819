package load_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/tarehq/tare/load"
)

// Runs side by side lend and take back in any order: none may undo what another
// did.
func TestProcessorsAreTakenBack(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for k := range 8 {
		all.Go(func() {
			for range 100 {
				takeBack := load.LendProcessors(1 + k%3)
				runtime.Gosched()
				takeBack()
			}
		})
	}
	all.Wait()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("got %d processors after the runs, want %d as before", got, before)
	}
}

func TestProcessorsAreLent(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	first, second := load.LendProcessors(2), load.LendProcessors(3)
	if got := runtime.GOMAXPROCS(0); got != before+5 {
		t.Errorf("lending 2 and 3: got %d processors, want %d", got, before+5)
	}
	first() // in the order in which runs may end
	if got := runtime.GOMAXPROCS(0); got != before+3 {
		t.Errorf("after the 2 are back: got %d processors, want %d", got, before+3)
	}
	second()
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("after all are back: got %d processors, want %d", got, before)
	}
}

// A program that sets fewer meanwhile keeps at least one, and the run ends.
func TestProcessorsSetMeanwhile(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	takeBack := load.LendProcessors(4)
	runtime.GOMAXPROCS(2)
	takeBack()
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("got %d processors, want 1", got)
	}
}
