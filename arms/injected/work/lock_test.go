package work_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/injected/work"
)

// TestLockWaits has eight goroutines want a lock for so long that its release hands
// the processor over with it: what calls take, less what they say that they waited, on
// either side of the lock, is at least what was burnt and at most the time that passed,
// since one holds the lock at a time.
func TestLockWaits(t *testing.T) {
	set, err := work.New(work.Amounts{Lock: 200 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	const calls = 100
	var took atomic.Int64
	var all sync.WaitGroup
	first := time.Now()
	for range 8 {
		all.Go(func() {
			for range calls {
				begun := time.Now()
				set.Lock.Do()
				took.Add(int64(time.Since(begun)))
			}
		})
	}
	all.Wait()
	passed := time.Since(first)
	held := time.Duration(took.Load() - truth(t, set)["lock"].Wait)
	if least := 8 * calls * 150 * time.Microsecond; held < least || held > passed*105/100 {
		t.Errorf("calls took %v but for what they waited, want %v to %v", held, least, passed)
	}
}
