package noise

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// Setting is what studies must share to be counted together.
type Setting struct {
	Looks   []int         `json:"looks"`      // numbers of blocks after which a study could stop
	Measure time.Duration `json:"measure_ns"` // measured part of a trial
	Metric  string        `json:"metric"`
}

func (s Setting) equal(other Setting) bool {
	return slices.Equal(s.Looks, other.Looks) && s.Measure == other.Measure && s.Metric == other.Metric
}

// Study is one study of a self-test: a program against itself, or against one that is known
// to take more CPU a request.
type Study struct {
	Setting
	Machine string        `json:"machine"`
	Sitting time.Time     `json:"sitting"`  // when the command began that ran it
	When    time.Time     `json:"when"`     // it ended
	Run     string        `json:"run"`      // its folder
	Added   time.Duration `json:"added_ns"` // the truth; 0: a program against itself

	// Workload is "" of studies that an older tare made: these are not counted, since a known
	// difference shows otherwise under another load.
	Workload string `json:"workload,omitzero"`

	Paired    []float64     `json:"paired"` // ln ratios, one a block
	Alpha     float64       `json:"alpha"`  // of the look that decided
	Threshold float64       `json:"threshold"`
	Verdict   stats.Verdict `json:"verdict"`   // as a report says it
	Effect    float64       `json:"effect"`    // ln ratio
	Excluding bool          `json:"excluding"` // the interval excludes no difference

	TwinFloor float64 `json:"twin_floor"` // noise floor from the control's twin
	TwinPairs int     `json:"twin_pairs"` // blocks behind that; 0: there is none

	Control    float64 `json:"control_ns"`    // median of the control
	Difference float64 `json:"difference_ns"` // measured
	Holding    bool    `json:"holding"`       // its interval holds Added
}

// toldApart is whether the arms are distinguished if the machine's noise floor was measured
// elsewhere, over so many pairs.
func (s *Study) toldApart(floor, pairs float64) bool {
	if n := float64(len(s.Paired)); n < pairs {
		floor *= math.Sqrt(pairs / n) // fewer blocks leave more noise, as with a calibration
	}
	return tells(stats.Compare(s.Paired, stats.Rule{Alpha: s.Alpha, Threshold: s.Threshold, Floor: floor}).Verdict)
}

// tells is whether a verdict tells the arms apart, if only by a little, as a report words it.
func tells(v stats.Verdict) bool {
	return v == stats.Faster || v == stats.Slower || v == stats.Small
}

// SelfTest counts the false positives of studies of a program against itself.
type SelfTest struct {
	Setting
	When      time.Time      `json:"when"`     // the last study ended
	Machines  []string       `json:"machines"` // in the order of their first study
	Sittings  int            `json:"sittings"`
	Studies   int            `json:"studies"`
	Verdicts  int            `json:"verdicts"`       // that tell the two apart, if only by a little
	Bound     stats.Interval `json:"bound"`          // Clopper-Pearson, 95 %, of Verdicts
	Apart     int            `json:"verdicts_apart"` // the same with the noise floor of the machine's other studies
	Excluding int            `json:"excluding"`      // intervals that exclude no difference
	Effects   []float64      `json:"effects"`        // ln ratio of each study
	Positive  []Positive     `json:"positive,omitempty"`
	Unnamed   int            `json:"without_workload,omitzero"` // studies that are not counted
}

// Positive counts studies of a program that is known to take more CPU a request.
type Positive struct {
	Added       time.Duration `json:"added_ns"` // the truth
	Studies     int           `json:"studies"`
	Found       int           `json:"found"`          // verdicts of slower
	Holding     int           `json:"holding"`        // intervals that hold the truth
	Shares      []float64     `json:"shares"`         // the truth as a share of the control's CPU a request, of each study
	Differences []float64     `json:"differences_ns"` // what each study measured
}

// Share is the truth as a share of the control's CPU a request, the median of all studies.
func (p Positive) Share() string { return unit.Format(stats.Median(p.Shares), unit.Share) }

func (p Positive) String() string {
	return fmt.Sprintf("%s more CPU a request (%s) was found in %d of %d studies and lay in the interval of %d", unit.Format(float64(p.Added), unit.Nanoseconds), p.Share(), p.Found, p.Studies, p.Holding)
}

func (s SelfTest) String() string {
	var positives strings.Builder
	for _, p := range s.Positive {
		positives.WriteString("; " + p.String())
	}
	return fmt.Sprintf("%d of %d A/A studies by %s on %s gave a false verdict (at most %s with 95 %% confidence), %d with the noise floor of the others; intervals excluding no difference: %d; %s until %s",
		s.Verdicts, s.Studies, s.Metric, s.where(), unit.Format(s.Bound.Hi, unit.Share), s.Apart, s.Excluding,
		unit.Plural(s.Sittings, "sitting"), s.When.Format(time.DateOnly)) + positives.String() + s.Aside()
}

// Aside says how many studies are not counted, since they do not name their workload; ""
// where there are none.
func (s SelfTest) Aside() string {
	if s.Unnamed == 0 {
		return ""
	}
	return fmt.Sprintf("; not counted, since an older tare did not name their workload: %d", s.Unnamed)
}

func (s SelfTest) where() string {
	switch {
	case len(s.Machines) > 1:
		return unit.Plural(len(s.Machines), "machine")
	case slices.Contains(s.Machines, Machine()):
		return "this machine"
	}
	return strings.Join(s.Machines, "")
}

// Sum counts studies of one setting, of any number of machines. It is an error if their
// settings differ, or the workloads of those of one kind. Studies without a workload are not
// counted.
func Sum(studies []Study) (s SelfTest, err error) {
	named := slices.DeleteFunc(slices.Clone(studies), func(st Study) bool { return st.Workload == "" })
	s.Unnamed, studies = len(studies)-len(named), named
	type sitting struct {
		machine string
		begun   int64
	}
	sittings, workloads := map[sitting]bool{}, map[bool]string{} // the latter by whether CPU was added
	var same []*Study
	for i := range studies {
		st := &studies[i]
		if i == 0 {
			s.Setting = st.Setting
		}
		if !s.equal(st.Setting) {
			return s, fmt.Errorf("studies of different settings are not counted together: looks %v and %v, a measured part of %s and %s, metric %s and %s",
				s.Looks, st.Looks, s.Measure, st.Measure, s.Metric, st.Metric)
		}
		if w, ok := workloads[st.Added > 0]; ok && w != st.Workload {
			return s, fmt.Errorf("studies of different workloads are not counted together: %s and %s", w, st.Workload)
		}
		workloads[st.Added > 0] = st.Workload
		if !slices.Contains(s.Machines, st.Machine) {
			s.Machines = append(s.Machines, st.Machine)
		}
		if st.When.After(s.When) {
			s.When = st.When
		}
		sittings[sitting{st.Machine, st.Sitting.UnixNano()}] = true
		if st.Added == 0 {
			same = append(same, st)
		} else {
			s.addPositive(st)
		}
	}
	s.Sittings = len(sittings)
	for _, st := range same {
		s.addSame(st)
	}
	s.Apart, s.Bound = countApart(same), stats.ClopperPearson(s.Verdicts, s.Studies, 0.05)
	return s, nil
}

// addSame counts a study of a program against itself.
func (s *SelfTest) addSame(st *Study) {
	s.Studies++
	s.Effects = append(s.Effects, st.Effect)
	if st.Excluding {
		s.Excluding++
	}
	if tells(st.Verdict) {
		s.Verdicts++
	}
}

// addPositive counts a study of a known difference among those of the same one.
func (s *SelfTest) addPositive(st *Study) {
	i, found := slices.BinarySearchFunc(s.Positive, st.Added, func(p Positive, added time.Duration) int { return cmp.Compare(p.Added, added) })
	if !found {
		s.Positive = slices.Insert(s.Positive, i, Positive{Added: st.Added})
	}
	p := &s.Positive[i]
	p.Studies++
	p.Shares = append(p.Shares, float64(st.Added)/st.Control)
	p.Differences = append(p.Differences, st.Difference)
	if st.Verdict == stats.Slower {
		p.Found++
	}
	if st.Holding {
		p.Holding++
	}
}

// countApart counts the false verdicts if the noise floor of each study is the median of
// those that the twins of the machine's others show: no trial under judgement has a part in
// its own floor.
func countApart(same []*Study) (verdicts int) {
	for i, st := range same {
		var floors, pairs []float64
		for j, other := range same {
			if i != j && other.Machine == st.Machine && other.TwinPairs > 0 {
				floors, pairs = append(floors, other.TwinFloor), append(pairs, float64(other.TwinPairs))
			}
		}
		if len(floors) > 0 && st.toldApart(stats.Median(floors), stats.Median(pairs)) {
			verdicts++
		}
	}
	return verdicts
}

// SelfTests keeps every [Study].
func SelfTests() (Cache, error) { return openCache("selftest", "studies.json") }

// Studies are those that the cache keeps, of this machine and setting.
func (c Cache) Studies(s Setting) ([]Study, error) {
	all, err := c.studies()
	return slices.DeleteFunc(all, func(st Study) bool { return st.Machine != Machine() || !st.equal(s) }), err
}

func (c Cache) studies() ([]Study, error) {
	all, err := readStudies(c.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// Add keeps one more study. The file is replaced as a whole: at no time is it cut short.
func (c Cache) Add(st Study) error {
	all, err := c.studies()
	if err != nil {
		return err
	}
	return c.Write(append(all, st))
}

// SetAside renames the file of studies, so that the next begins a new one, and returns its
// new name; "" where there was none.
func (c Cache) SetAside(now time.Time) (string, error) {
	to := filepath.Join(c.Dir, "studies-until-"+now.UTC().Format("20060102-150405")+".json")
	err := os.Rename(c.Path(), to)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return to, err
}

// ReadStudies reads files of studies, such as those of several machines. A study that more
// than one of them holds is there once.
func ReadStudies(files []string) (all []Study, err error) {
	type study struct {
		machine string
		ended   int64
	}
	seen := map[study]bool{}
	for _, file := range files {
		part, err := readStudies(file)
		if err != nil {
			return nil, err
		}
		for _, st := range part {
			if one := (study{st.Machine, st.When.UnixNano()}); !seen[one] {
				seen[one] = true
				all = append(all, st)
			}
		}
	}
	return all, nil
}

func readStudies(file string) (all []Study, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading the self-test's studies: %s: %w", file, err)
	}
	for i, st := range all {
		if st.Machine == "" || len(st.Looks) == 0 || len(st.Paired) == 0 || !(st.Control > 0) {
			return nil, fmt.Errorf("reading the self-test's studies: %s: element %d is not a study: machine, looks, paired and control_ns must be there", file, i)
		}
	}
	return all, nil
}

// describeSelfTest is what reports say of the studies that ran here under the setting of
// the last one; "" if none did.
func describeSelfTest() string {
	cache, err := SelfTests()
	if err != nil {
		return ""
	}
	all, err := cache.studies()
	mine := slices.DeleteFunc(all, func(st Study) bool { return st.Machine != Machine() || st.Workload == "" })
	if err != nil || len(mine) == 0 {
		return ""
	}
	last, workloads := mine[len(mine)-1].Setting, map[bool]string{}
	for _, st := range mine {
		workloads[st.Added > 0] = st.Workload // the last one's
	}
	s, err := Sum(slices.DeleteFunc(mine, func(st Study) bool { return !st.equal(last) || st.Workload != workloads[st.Added > 0] }))
	if err != nil {
		return ""
	}
	return s.String()
}
