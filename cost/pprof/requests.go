package pprof

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// requestsComment begins the comment by which a profile says how many requests
// were answered while it was recorded, and within what margin if they were not
// counted one by one. Other tools pass comments on.
const requestsComment = "tare requests "

// Requests returns how many requests the profile's comment says were answered
// meanwhile, and half the width of the 95 % interval of that; 0 if it says nothing.
func (p *Profile) Requests() (n, margin float64) {
	for _, c := range p.raw.Comments {
		text, ok := strings.CutPrefix(c, requestsComment)
		if !ok {
			continue
		}
		number, within, _ := strings.Cut(text, " ± ")
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n > 0 && n < 1e18) {
			continue
		}
		if margin, err = strconv.ParseFloat(within, 64); err != nil || !(margin > 0 && margin < 1e18) {
			margin = 0
		}
		return n, margin
	}
	return 0, 0
}

// SetRequests notes in the profile how many requests were answered meanwhile, and
// half the width of the 95 % interval of that, 0 if they were counted one by one; 0
// requests take the note away.
func (p *Profile) SetRequests(n, margin float64) {
	p.raw.Comments = slices.DeleteFunc(p.raw.Comments, func(c string) bool { return strings.HasPrefix(c, requestsComment) })
	if n <= 0 {
		return
	}
	note := requestsComment + strconv.FormatFloat(n, 'f', -1, 64)
	if margin > 0 {
		note += " ± " + strconv.FormatFloat(margin, 'f', -1, 64)
	}
	p.raw.Comments = append(p.raw.Comments, note)
}

// countedComment begins the comment by which a profile says when the requests were counted
// that its number of them rests on.
const countedComment = "tare counted "

// Counted is when they were, the earliest of several counts; zero if the profile does not
// say. Profiles that rest on one count err together.
func (p *Profile) Counted() time.Time {
	for _, c := range p.raw.Comments {
		if text, ok := strings.CutPrefix(c, countedComment); ok {
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				return at
			}
		}
	}
	return time.Time{}
}

// SetCounted notes that in the profile; the zero time takes the note away.
func (p *Profile) SetCounted(at time.Time) {
	p.raw.Comments = slices.DeleteFunc(p.raw.Comments, func(c string) bool { return strings.HasPrefix(c, countedComment) })
	if !at.IsZero() {
		p.raw.Comments = append(p.raw.Comments, countedComment+at.UTC().Format(time.RFC3339Nano))
	}
}
