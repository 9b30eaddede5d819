package breaker

import "time"

// parts is how many parts a window slides by.
const parts = 10

// window counts requests of the last time.
type window struct {
	width time.Duration // of a part
	at    int64         // the number of the part that is now, since the epoch
	parts [parts]struct{ all, failed uint32 }
}

func (w *window) add(now time.Duration, failed bool) {
	at := int64(now / w.width)
	for i := range min(at-w.at, parts) {
		w.parts[(at-i)%parts] = struct{ all, failed uint32 }{}
	}
	w.at = max(at, w.at)
	p := &w.parts[w.at%parts]
	p.all++
	if failed {
		p.failed++
	}
}

// share returns the share of requests that failed, 0 if there were fewer than least.
func (w *window) share(least int) float64 {
	all, failed := uint64(0), uint64(0)
	for _, p := range w.parts {
		all += uint64(p.all)
		failed += uint64(p.failed)
	}
	if all < uint64(least) {
		return 0
	}
	return float64(failed) / float64(all)
}

func (w *window) clear() { w.parts = [parts]struct{ all, failed uint32 }{} }
