package study

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/internal/shape"
)

// The bounds of what a run may be asked to do.
const (
	leastBlocks = 6    // below it no exact interval at 95 % exists
	mostBlocks  = 1000 // of a run
)

// LooksUpTo returns the numbers of blocks after which a run of at most cap
// blocks may stop: the study's looks below cap, and cap itself. A cap of 0 is
// the study's own: its last look. A study that looks once does so at cap.
func (s *Study) LooksUpTo(cap int) []int {
	looks := s.Looks
	if len(looks) == 0 {
		looks = []int{8, 12, 18, 30}
	}
	if cap <= 0 {
		return slices.Clone(looks)
	}
	upTo := slices.DeleteFunc(slices.Clone(looks), func(n int) bool { return n >= cap || len(looks) == 1 })
	return append(upTo, cap)
}

// HasQuickForm reports whether the study says what its short form is.
func (s *Study) HasQuickForm() bool { return !reflect.ValueOf(s.Quick).IsZero() }

// QuickForm returns the short form of the study; s stays as it is. Checks of
// claims and goals that the short form cannot make are left out of it, but for a claim's
// first. It looks once, after all its blocks: an earlier look that decides the primary
// comparison would leave claims with too few.
func (s *Study) QuickForm() *Study {
	whole := *s
	whole.Attribute = s.Attribute.with(s.Quick.Attribute)
	q := whole.of(s.Quick.Arms, s.Quick.Workloads)
	if s.Quick.Blocks > 0 {
		q.Looks = []int{s.Quick.Blocks}
	}
	q.Trial = s.Trial.with(s.Quick.Trial)
	if s.Quick.Trial.Measure > 0 {
		for i := range q.Workloads {
			q.Workloads[i].Measure = 0
		}
	}
	q.Quick = Quick{}
	return q
}

// of is the study with these arms and workloads alone; none stand for all. Checks
// go as they do from the short form.
func (s *Study) of(arms, workloads []string) *Study {
	q := *s
	if len(arms) > 0 {
		q.Arms = slices.DeleteFunc(slices.Clone(s.Arms), func(a Arm) bool { return !slices.Contains(arms, a.Name) })
	}
	if len(workloads) > 0 {
		q.Workloads = slices.DeleteFunc(slices.Clone(s.Workloads), func(w Workload) bool { return !slices.Contains(workloads, w.Name) })
	}
	q.narrow()
	q.Claims, q.Goals = q.keepClaims(s.Claims), q.goalsWithin(s.Goals)
	return &q
}

// Part returns the study with these arms, the control always among them, and these
// workloads; none stand for all. s stays as it is. The short form of a part has the
// arms and workloads that were named. It is an error to name what the study does not
// have, or to leave out what its primary metric is measured with.
func (s *Study) Part(arms, workloads []string) (*Study, error) {
	if err := s.known("arm", arms, names(len(s.Arms), func(i int) string { return s.Arms[i].Name })); err != nil {
		return nil, err
	}
	if err := s.known("workload", workloads, names(len(s.Workloads), func(i int) string { return s.Workloads[i].Name })); err != nil {
		return nil, err
	}
	if len(arms) > 0 {
		arms = append([]string{s.Control}, arms...)
	}
	q := s.of(arms, workloads)
	p := s.Primary
	switch {
	case len(q.Arms) == 1 && !s.Twin:
		return nil, fmt.Errorf("study %s: the control %q alone has nothing to be compared with: name another arm", s.Name, s.Control)
	case p.Arm != "" && !q.hasArm(p.Arm):
		return nil, fmt.Errorf("study %s: the primary arm %q is missing: the study decides on it, so name it, too", s.Name, p.Arm)
	case !q.hasWorkload(p.Workload) && len(workloads) > 0 && !slices.Contains(workloads, p.Workload):
		return nil, fmt.Errorf("study %s: the primary workload %q is missing: the study decides on what is measured there, so name it, too", s.Name, p.Workload)
	case !q.hasWorkload(p.Workload), len(q.Arms) > 1 && s.compares(p.Workload) && !q.compares(p.Workload):
		return nil, fmt.Errorf("study %s: none but the control is left under the primary workload %q: name an arm that it is for", s.Name, p.Workload)
	}
	if len(arms) > 0 {
		q.Quick.Arms = nil
	}
	if len(workloads) > 0 {
		q.Quick.Workloads = nil
	}
	return q, nil
}

// known refuses a name that is not among those that the study has.
func (s *Study) known(what string, list, has []string) error {
	for _, name := range list {
		if slices.Contains(has, name) {
			continue
		}
		return fmt.Errorf("study %s has no %s %q: %sit has %s", s.Name, what, name, shape.Meant(name, has), strings.Join(has, ", "))
	}
	return nil
}

// Without returns the study without these arms (by name, with the reason); s
// stays as it is. Checks of claims that name such an arm stay: that they
// cannot be judged is a result. A workload none of whose arms is left but the
// control goes.
func (s *Study) Without(arms map[string]string) *Study {
	q := *s
	q.Arms = slices.DeleteFunc(slices.Clone(s.Arms), func(a Arm) bool { _, out := arms[a.Name]; return out })
	q.narrow()
	return &q
}

// narrow restricts the workloads' lists of arms to the arms that are left. The
// lists are new; those of another study stay as they are.
func (s *Study) narrow() {
	var kept []Workload
	for _, w := range s.Workloads {
		if w.Arms != nil {
			w.Arms = slices.DeleteFunc(slices.Clone(w.Arms), func(name string) bool { return !s.hasArm(name) })
			if len(w.Arms) == 0 || len(w.Arms) == 1 && w.Arms[0] == s.Control && !s.Twin {
				continue
			}
		}
		kept = append(kept, w)
	}
	s.Workloads = kept
	s.Attribute = s.Attribute.among(s)
}

// keepClaims returns the claims' checks whose arms and workloads the study has. The checks
// that decide on a claim stay for the sake of any other, though they cannot be
// made: no other may decide in their place.
func (s *Study) keepClaims(claims []Claim) []Claim {
	var kept []Claim
	for _, c := range claims {
		if !slices.ContainsFunc(c.Checks, s.canCheck) {
			continue
		}
		headline := len(c.Headline())
		others := slices.DeleteFunc(slices.Clone(c.Checks[headline:]), func(k Check) bool { return !s.canCheck(k) })
		c.Checks = append(c.Checks[:headline:headline], others...)
		kept = append(kept, c)
	}
	return kept
}

func (s *Study) canCheck(k Check) bool {
	for _, name := range append([]string{k.Arm, k.Against}, k.Plus...) {
		if name != "" && !s.hasArm(name) {
			return false
		}
	}
	if m, _ := MetricNamed(k.Metric); m.Attributed {
		return s.attributes(k)
	}
	return k.Workload == "" || s.hasWorkload(k.Workload)
}

func (s *Study) hasWorkload(name string) bool {
	return slices.ContainsFunc(s.Workloads, func(w Workload) bool { return w.Name == name })
}

// compares reports whether the study has an arm beside the control under a workload.
// The control's twin, which keeps a workload, is none.
func (s *Study) compares(workload string) bool {
	return slices.ContainsFunc(s.Workloads, func(w Workload) bool {
		return w.Name == workload && slices.ContainsFunc(s.ArmsOf(w), func(a Arm) bool { return a.Name != s.Control })
	})
}

func (s *Study) hasArm(name string) bool {
	return slices.ContainsFunc(s.Arms, func(a Arm) bool { return a.Name == name })
}

// with is the trial with what is set in other set so.
func (t Trial) with(other Trial) Trial {
	if other.WarmUp > 0 {
		t.WarmUp = other.WarmUp
	}
	if other.Measure > 0 {
		t.Measure = other.Measure
	}
	if other.Slice > 0 {
		t.Slice = other.Slice
	}
	return t
}

// WarmUpOr is the part before the measured one: 300 ms unless set.
func (t Trial) WarmUpOr() time.Duration { return positive(t.WarmUp, 300*time.Millisecond) }

// MeasureOr is the measured part: 2 s unless set.
func (t Trial) MeasureOr() time.Duration { return positive(t.Measure, 2*time.Second) }

// Measured is the measured part of a workload's trials.
func (s *Study) Measured(w Workload) time.Duration { return positive(w.Measure, s.Trial.MeasureOr()) }

// SliceOr is the period of the trial's series: 200 ms unless set.
func (t Trial) SliceOr() time.Duration { return positive(t.Slice, 200*time.Millisecond) }

// TimeoutOr is the longest wait for an answer: 10 s unless set.
func (w Workload) TimeoutOr() time.Duration { return positive(w.Timeout, 10*time.Second) }

// FailuresOr is the workload's, or its default.
func (w Workload) FailuresOr() float64 { return positive(w.Failures, 0.001) }

func positive[T time.Duration | float64](d, other T) T {
	if d > 0 {
		return d
	}
	return other
}
