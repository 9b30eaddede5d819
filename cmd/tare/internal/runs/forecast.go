package runs

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// warnTooFew says beforehand that no look can decide, whatever the effect: too
// many arms share the error rate for so few blocks.
func warnTooFew(t *cli.Terminal, s *study.Study, blocks int) {
	last := lastLook(s, blocks)
	if least := leastBlocks(s, []stats.Look{last}); last.Blocks < least {
		fmt.Fprintf(t.Err, "%s too few to decide, however large the effect: %d arms need %d blocks\n",
			areMany(last.Blocks, "block"), 1+family(s), least)
	}
}

// areMany is a number of things with its verb.
func areMany(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

// leastBlocks is the number of blocks without which no effect is ever told
// apart at a look's share of the error rate, taken early or not.
func leastBlocks(s *study.Study, looks []stats.Look) (least int) {
	before := 0
	for _, look := range looks {
		least = max(before+1, stats.BlocksForFamily(family(s), look.Alpha))
		if before = look.Blocks; least <= before {
			break
		}
	}
	return least
}

// family is the number of comparisons that share the error rate.
func family(s *study.Study) int {
	if s.Primary.Arm != "" {
		return 1
	}
	return max(1, len(s.Arms)-1)
}

// announceBudget says beforehand what the session's budget of time can tell apart, in at most
// its blocks (0: the study's own).
func (s *Session) announceBudget(t *cli.Terminal, st *study.Study) {
	block := study.Estimate(st, 1, lab.Overhead)
	n, bound := fit(st, s.Budget), ""
	if most := lastLook(st, s.Blocks).Blocks; n > most {
		n = most
		if s.Blocks > 0 {
			bound = ": --blocks allows no more"
		}
	}
	fmt.Fprintf(t.Err, "blocks that fit into %s: %d, each of about %s, after %s for pilot and captures%s\n",
		s.Budget, n, block.Round(100*time.Millisecond), lab.Besides(st).Round(time.Second), bound)
	if least, need := toTell(st, s.Blocks); n < least {
		fmt.Fprintf(t.Err, "too few to detect any effect: it takes at least %d blocks, about %s\n", least, need.Round(time.Second))
		return
	}
	AnnounceEffect(t, st, n, s.Dir)
}

// fit is about how many blocks end within a budget.
func fit(s *study.Study, budget time.Duration) int {
	captures := study.EstimateCaptures(s, lab.Overhead)
	pilot := lab.Besides(s) - captures
	return lab.Fit(budget-pilot, study.Estimate(s, 1, lab.Overhead), captures, lab.Looks(s, 0)[0].Blocks)
}

// toTell is the least number of blocks that tell any effect apart, and about how long these
// take. The captures come last, and only after a first look are they worth their time.
func toTell(s *study.Study, blocks int) (least int, need time.Duration) {
	looks := lab.Looks(s, blocks)
	least = leastBlocks(s, looks)
	need = lab.Besides(s) + study.Estimate(s, least, lab.Overhead)
	if least <= looks[0].Blocks {
		need -= study.EstimateCaptures(s, lab.Overhead)
	}
	return least, need
}

// Planned is at most how many blocks a run has within the session's blocks and budget, and
// about how long that takes.
func (s *Session) Planned(st *study.Study) (blocks int, took time.Duration) {
	blocks = lastLook(st, s.Blocks).Blocks
	if s.Budget == 0 {
		return blocks, LongestTime(st, s.Blocks)
	}
	blocks = min(blocks, max(1, fit(st, s.Budget))) // a first block always runs
	return blocks, min(s.Budget, study.Estimate(st, blocks, lab.Overhead)+lab.Besides(st))
}

// CheckBudget refuses a budget in which no comparison could be decided, be it that there is no
// effect, even if programs took no time to start and none were installed that an arm may lack.
// It says what would do.
func (s *Session) CheckBudget(st *study.Study) error {
	looks := lab.Looks(st, s.Blocks)
	fewest := 1 // of a control alone, there is nothing to tell
	if len(st.Arms) > 1 {
		fewest = min(stats.BlocksForFamily(1, 2*looks[0].Alpha), looks[len(looks)-1].Blocks)
	}
	lacking := map[string]string{}
	for _, a := range st.Arms {
		if len(a.Needs) > 0 && a.Name != st.Control {
			lacking[a.Name] = ""
		}
	}
	if s.Budget == 0 || study.Estimate(st.Without(lacking), fewest, 0) <= s.Budget {
		return nil
	}
	least, need := toTell(st, s.Blocks)
	ways := []string{fmt.Sprintf("--budget %s", roundUp(need))}
	if st.HasQuickForm() && !s.Quick {
		if quick := LongestTime(st.QuickForm(), s.Blocks); quick < need {
			ways = append(ways, fmt.Sprintf("--quick (about %s at most)", quick.Round(time.Second)))
		}
	}
	if family(st) > 1 {
		ways = append(ways, "--arms with fewer arms")
	}
	return cli.Usage("", fmt.Errorf("--budget %s is too short for study %s: it takes %s to find any effect among %s, so try %s",
		s.Budget, st.Name, unit.Plural(least, "block"), unit.Plural(len(st.Arms), "arm"), strings.Join(ways, ", or ")))
}

// roundUp is a time for people to type, not shorter than d.
func roundUp(d time.Duration) time.Duration {
	step := time.Minute
	if d < 2*step {
		step = 5 * time.Second
	}
	return (d + step - 1).Truncate(step)
}

// AnnounceEffect says beforehand how small an effect on the primary metric so many blocks
// should detect: by how still the calibration found this machine, or else a run that home keeps.
func AnnounceEffect(t *cli.Terminal, s *study.Study, blocks int, home string) {
	metric, _ := study.MetricNamed(s.Primary.Metric)
	cal, ok, err := noise.ReadFloor()
	by := ""
	if err != nil || !ok || cal.Blocks == 0 {
		if cal = keptFloor(home, s); cal.Blocks == 0 {
			fmt.Fprintf(t.Err, "the smallest detectable effect is unknown on this machine: run `tare calibrate` once\n")
			return
		}
		by = ", by the noise of run " + cal.Run
	}
	floor, ok := cal.Floor[s.Primary.Metric]
	if !ok {
		fmt.Fprintf(t.Err, "the smallest detectable effect on %s is unknown: the calibration has no floor for it\n", metric.Title)
		return
	}
	if blocks < cal.Blocks {
		floor *= math.Sqrt(float64(cal.Blocks) / float64(blocks))
	}
	fmt.Fprintf(t.Err, "smallest effect on %s that they should detect: about %s%s\n", metric.Title, unit.Change(math.Expm1(2*floor)), by)
}

// mostFloors is how many kept runs are read in search of a noise floor, which takes a while.
const mostFloors = 10

// keptFloor is the noise floor that the newest run of the study with its control showed, of no
// blocks if the newest few show none on the primary metric. It holds as long as a calibration.
func keptFloor(home string, s *study.Study) noise.Calibration {
	all, _ := record.List(home) // the newest first; without a list there is no floor
	n := 0
	for _, kept := range all {
		if kept.Study != s.Name || time.Since(kept.Started) > noise.FloorAge {
			continue
		}
		if n++; n > mostFloors {
			break
		}
		run, err := record.Open(kept.Dir)
		if err != nil || run.Manifest.Study.Control != s.Control {
			continue
		}
		a, err := verdict.Analyse(run)
		if err != nil {
			continue
		}
		if floors, blocks := a.Floors(); floors[s.Primary.Metric] > 0 {
			return noise.Calibration{Blocks: blocks, Floor: floors, Run: run.Manifest.ID}
		}
	}
	return noise.Calibration{}
}
