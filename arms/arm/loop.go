package arm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// LoopRequest is one request of the in-process loop.
type LoopRequest struct {
	Method string            `json:"method"` // "" means GET
	Target string            `json:"target"` // path and query
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
}

// Answer is what one call of the loop answered.
type Answer struct {
	Status int
	Body   []byte // valid until the next call
}

// loopResult is what the loop measured, each a request, averaged over the
// requests asked for.
type loopResult struct {
	N       uint64       `json:"n"`
	NS      float64      `json:"ns"`
	Bytes   float64      `json:"bytes"`
	Allocs  float64      `json:"allocs"`
	Answers []loopAnswer `json:"answers"`
}

type loopAnswer struct {
	Status int    `json:"status"`
	SHA256 string `json:"sha256"`
	Length int64  `json:"length"`
}

// batches is how many parts a loop is measured in. Time is their median: a
// part in which the machine did something else does not count, while garbage
// collection, which happens in all of them, does.
//
// Note: of each part counts its time by the clock or the CPU time of the process,
// whichever is less. They differ by what others took: other processes, or whoever
// else the host serves. While these had up to a third of the processors, twelve
// runs of five context values had medians of 0.88 to 3.7 µs by the clock, and of 0.88
// to 1.6 µs so. CPU time alone would count a collector that runs beside on processors
// that have nothing else to do.
const batches = 40

// runLoop answers the requests in turn, one at a time, for about d after a
// calibration that serves as warm-up.
func runLoop(prepare func(LoopRequest) func() Answer, d time.Duration, reqs []LoopRequest) (res *loopResult, err error) {
	if prepare == nil {
		return nil, errors.New("this arm has no in-process loop")
	}
	if len(reqs) == 0 {
		return nil, errors.New("the loop was given no requests")
	}
	at := "preparing"
	defer func() {
		if v := recover(); v != nil {
			res, err = nil, fmt.Errorf("%s: panic: %v", at, v)
		}
	}()
	res = &loopResult{}
	calls := make([]func() Answer, len(reqs))
	for i, q := range reqs {
		at = fmt.Sprintf("answering %s %s", cmp.Or(q.Method, "GET"), q.Target)
		calls[i] = prepare(q)
		a := calls[i]()
		sum := sha256.Sum256(a.Body)
		res.Answers = append(res.Answers, loopAnswer{a.Status, hex.EncodeToString(sum[:]), int64(len(a.Body))})
	}
	at = "running the loop"
	measure(res, calls, d)
	return res, nil
}

// measure fills in what a request costs. Nothing in it allocates between the
// two readings of the allocator's counters.
func measure(res *loopResult, calls []func() Answer, d time.Duration) {
	rounds := calibrate(calls, d/batches)
	times := make([]float64, 0, 4*batches)
	var before, after runtime.MemStats
	runtime.GC() // every loop starts from the same heap
	runtime.ReadMemStats(&before)
	for start := time.Now(); len(times) < cap(times); {
		t, cpu := time.Now(), cpuTime()
		spin(calls, rounds)
		took := time.Since(t)
		if used := cpuTime() - cpu; used > 0 {
			took = min(took, used)
		}
		times = append(times, float64(took))
		if time.Since(start) >= d {
			break
		}
	}
	runtime.ReadMemStats(&after)
	perBatch := float64(rounds * len(calls))
	res.N = uint64(len(times) * rounds * len(calls))
	res.NS = median(times) / perBatch
	res.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / float64(res.N)
	res.Allocs = float64(after.Mallocs-before.Mallocs) / float64(res.N)
}

// calibrate returns how many rounds take about so long.
func calibrate(calls []func() Answer, d time.Duration) int {
	for rounds := 1; ; rounds *= 2 {
		t := time.Now()
		spin(calls, rounds)
		if took := time.Since(t); took >= d/2 {
			return max(1, int(float64(rounds)*float64(d)/float64(took)))
		}
	}
}

func spin(calls []func() Answer, rounds int) {
	for range rounds {
		for _, call := range calls {
			call()
		}
	}
}

// median sorts v.
func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
