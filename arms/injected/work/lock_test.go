package work_test

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarehq/tare/arms/injected/work"
)

// TestLockWaits has eight goroutines want a lock for so long that its release hands
// the processor over with it: what a call takes is the time that it worked and the
// time that it waited, on either side of that.
func TestLockWaits(t *testing.T) {
	set, err := work.New(work.Amounts{Lock: 200 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	var took atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				begun := time.Now()
				set.Lock.Do()
				took.Add(int64(time.Since(begun)))
			}
		})
	}
	all.Wait()
	var truth map[string]struct {
		Wall int64 `json:"ns"`
		Wait int64 `json:"wait_ns"`
	}
	if err := json.Unmarshal(set.Truth(), &truth); err != nil {
		t.Fatal(err)
	}
	told, want := truth["lock"].Wall+truth["lock"].Wait, took.Load()
	if told > want || told < want*95/100 {
		t.Errorf("worked %s and waited %s, want 95 to 100 %% of %s together", time.Duration(truth["lock"].Wall), time.Duration(truth["lock"].Wait), time.Duration(want))
	}
}
