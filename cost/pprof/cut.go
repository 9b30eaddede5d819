package pprof

import (
	"fmt"

	"github.com/google/pprof/profile"
)

// bounds returns the most frames that Go's runtime may keep of a stack in a CPU
// profile, inlined ones counted; it leaves out the outer ones. The first is that of
// runtime/cpuprof.go, the second that of the runtime's other profiles, which a
// toolchain may have in its place.
func bounds() [2]int { return [2]int{64, 128} }

// mostCut is the share of cut stacks that is not worth a word.
const mostCut = 0.01

// cutStacks is the warning that stacks of a CPU profile are not whole; nil if too
// few are to matter, or if the profile is not the runtime's, whose profiles name
// what is mapped.
func cutStacks(raw *profile.Profile, count int) error {
	if len(raw.Mapping) == 0 {
		return nil
	}
	for _, most := range bounds() {
		cut, all, beyond := 0.0, 0.0, false
		for _, s := range raw.Sample {
			frames, last := depth(s)
			// Of the last place, all inlined functions are named even if the bound
			// fell among them.
			beyond = beyond || frames-last >= most
			if frames >= most {
				cut += float64(s.Value[count])
			}
			all += float64(s.Value[count])
		}
		if beyond {
			continue // it is another toolchain's bound
		}
		if cut > mostCut*all {
			return fmt.Errorf("%.1f %% of the stacks have %d frames, where the service's runtime cuts them off: owners further out are not seen, and what they spent may be charged to others", 100*cut/all, most)
		}
		return nil
	}
	return nil
}

// depth counts a stack's frames, and those of its outermost place.
func depth(s *profile.Sample) (frames, last int) {
	for _, at := range s.Location {
		last = max(1, len(at.Line))
		frames += last
	}
	return frames, last
}
