package pprof

import (
	"strings"
	"time"
)

// buildComment begins the comment by which a profile says which build it is of, where it
// does not by what was mapped.
const buildComment = "tare build "

// SetOrigin notes in the profile when it began, and what tells the program that it is of
// from other builds.
func (p *Profile) SetOrigin(begun time.Time, build string) {
	p.raw.TimeNanos = begun.UnixNano()
	p.raw.Comments = append(p.raw.Comments, buildComment+build)
}

// Begun is when the profile began; zero if it does not say.
func (p *Profile) Begun() time.Time {
	if p.raw.TimeNanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, p.raw.TimeNanos)
}

// BuildID tells the program that the profile is of from other builds; "" if the profile does
// not.
func (p *Profile) BuildID() string {
	for _, c := range p.raw.Comments {
		if id, ok := strings.CutPrefix(c, buildComment); ok {
			return id
		}
	}
	if len(p.raw.Mapping) == 0 {
		return ""
	}
	return p.raw.Mapping[0].BuildID
}
