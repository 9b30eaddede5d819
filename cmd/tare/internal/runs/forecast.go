package runs

import (
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/noise"
	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// warnTooFew says beforehand that no look can decide, whatever the effect: too
// many arms share the error rate for so few blocks.
func warnTooFew(t *cli.Terminal, s *study.Study, blocks int) {
	last := lastLook(s, blocks)
	if least := leastBlocks(s, last); last.Blocks < least {
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
// apart at a look's share of the error rate.
func leastBlocks(s *study.Study, look stats.Look) int {
	return stats.BlocksForFamily(family(s), look.Alpha)
}

// family is the number of comparisons that share the error rate.
func family(s *study.Study) int {
	if s.Primary.Arm != "" {
		return 1
	}
	return max(1, len(s.Arms)-1)
}

// announceBudget says beforehand what a budget of time can tell apart, in at most
// so many blocks (0: the study's own).
func announceBudget(t *cli.Terminal, s *study.Study, budget time.Duration, blocks int) {
	block := study.Estimate(s, 1, lab.Overhead)
	besides := lab.Besides(s)
	n := max(0, int((budget-besides)/block))
	looks := lab.Looks(s, blocks)
	most, bound := looks[len(looks)-1].Blocks, ""
	if blocks > 0 && n > most {
		bound = ": --blocks allows no more"
	}
	n = min(n, most)
	fmt.Fprintf(t.Err, "blocks that fit into %s: %d, each of about %s, after %s for pilot and captures%s\n",
		budget, n, block.Round(100*time.Millisecond), besides.Round(time.Second), bound)
	if least := leastBlocks(s, looks[0]); n < least {
		fmt.Fprintf(t.Err, "too few to detect any effect: it takes at least %d blocks, about %s\n",
			least, (time.Duration(least)*block + besides).Round(time.Second))
		return
	}
	AnnounceEffect(t, s, n)
}

// AnnounceEffect says beforehand how small an effect on the primary metric so many blocks
// should detect, by how still the calibration found this machine.
func AnnounceEffect(t *cli.Terminal, s *study.Study, blocks int) {
	metric, _ := study.MetricNamed(s.Primary.Metric)
	cal, ok, err := noise.ReadFloor()
	if err != nil || !ok || cal.Blocks == 0 {
		fmt.Fprintf(t.Err, "the smallest detectable effect is unknown on this machine: run `tare calibrate` once\n")
		return
	}
	floor, ok := cal.Floor[s.Primary.Metric]
	if !ok {
		fmt.Fprintf(t.Err, "the smallest detectable effect on %s is unknown: the calibration has no floor for it\n", metric.Title)
		return
	}
	if blocks < cal.Blocks {
		floor *= math.Sqrt(float64(cal.Blocks) / float64(blocks))
	}
	fmt.Fprintf(t.Err, "smallest effect on %s that they should detect: about %s\n", metric.Title, unit.Change(math.Expm1(2*floor)))
}
