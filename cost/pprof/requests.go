package pprof

import (
	"slices"
	"strconv"
	"strings"
)

// requestsComment begins the comment by which a profile says how many requests
// were answered while it was recorded. Other tools pass comments on.
const requestsComment = "tare requests "

// Requests returns how many requests the profile's comment says were answered
// meanwhile; 0 if it says nothing.
func (p *Profile) Requests() float64 {
	for _, c := range p.raw.Comments {
		if text, ok := strings.CutPrefix(c, requestsComment); ok {
			if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < 1e18 {
				return n
			}
		}
	}
	return 0
}

// SetRequests notes in the profile how many requests were answered meanwhile; 0
// takes the note away.
func (p *Profile) SetRequests(n float64) {
	p.raw.Comments = slices.DeleteFunc(p.raw.Comments, func(c string) bool { return strings.HasPrefix(c, requestsComment) })
	if n > 0 {
		p.raw.Comments = append(p.raw.Comments, requestsComment+strconv.FormatFloat(n, 'f', -1, 64))
	}
}
