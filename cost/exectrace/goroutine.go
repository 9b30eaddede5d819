package exectrace

import "golang.org/x/exp/trace"

// piece is a time that a goroutine spent in one state.
type piece struct {
	begin, end trace.Time
	state      State
	at         *site // nil: not known
	by         *site // who ended it, if that was a goroutine
	elsewhere  bool  // on another goroutine
	merged     int   // so many short ones as one
}

// history is what a goroutine did, one piece after another without a gap.
type history []piece

// maxPieces bounds a history. A request with more has its short pieces merged.
const maxPieces = 512

// add appends a piece, if it has any length.
func (h *history) add(p piece) {
	if p.end <= p.begin {
		return
	}
	if len(*h) >= maxPieces {
		h.condense()
	}
	*h = append(*h, p)
}

// condense merges neighbours that are short against the whole, until at most half
// of the pieces are left. Long ones stay as they are.
func (h *history) condense() {
	all := *h
	grain := all[len(all)-1].end - all[0].begin
	for grain /= maxPieces; len(*h) > maxPieces/2; grain *= 4 {
		kept := all[:1]
		for _, p := range all[1:] {
			last := &kept[len(kept)-1]
			if p.end-p.begin > grain || last.end-last.begin > grain {
				kept = append(kept, p)
				continue
			}
			last.merge(p)
		}
		all, *h = kept, kept
	}
}

// merge lengthens p by the piece after it. What it is called is the longer's.
func (p *piece) merge(next piece) {
	merged := max(1, p.merged) + max(1, next.merged)
	begin := p.begin
	if next.end-next.begin > p.end-p.begin {
		*p = next
	}
	p.begin, p.end, p.merged = begin, next.end, merged
}

// since returns the pieces after from, the first of them cut to begin there.
func (h history) since(from trace.Time) history {
	for i := range h {
		if h[i].end > from {
			rest := append(history(nil), h[i:]...)
			rest[0].begin = max(rest[0].begin, from)
			return rest
		}
	}
	return nil
}

// stage is how a connection's goroutine stands to requests.
type stage int

const (
	strange stage = iota // nothing is known of it yet
	away                 // not serving
	idle                 // waits for a request
	maybe                // woken: there may be a request
	busy                 // serves one
	given                // the handler has the connection
)

// goroutine is a live goroutine.
type goroutine struct {
	id    trace.GoID
	state State
	since trace.Time
	at    *site // where it waits or, if it runs, where it was last seen
	born  *site // where it was started, if that is known and plays a part

	stage   stage
	begin   trace.Time // of the request
	stopped bool       // it was made to stop running in the middle of something
	woken   bool       // the request's first bytes woke it
	unborn  bool       // the request had begun before the goroutine was first seen
	request *request   // that it serves, or was started for
	past    history    // since the request began, or it was started for one
	samples []*site    // seen while it runs
	assists int        // ranges of helping the collector that it is in
}

// request is what a request's goroutines have in common.
type request struct {
	log        string
	collected  int64 // nanoseconds of collection when it began
	stopped    int64
	goroutines int  // started for it
	probe      bool // for a profile or a trace
	announced  bool // by the engine
	over       bool
}
