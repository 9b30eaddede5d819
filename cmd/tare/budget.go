package main

import (
	"fmt"
	"math"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// announceBudget says beforehand what a budget of time can tell apart.
func announceBudget(t *terminal, s *study.Study, budget time.Duration) {
	block := study.Estimate(s, 1, lab.Overhead)
	n := int(budget / block)
	looks := s.LooksUpTo(0)
	n = min(n, looks[len(looks)-1])
	fmt.Fprintf(t.err, "a block takes about %s: %d blocks fit into %s\n", block.Round(time.Second), n, budget)
	family := 1
	if s.Primary.Arm == "" {
		family = len(s.Arms) - 1
	}
	least := stats.BlocksForFamily(family, stats.Looks()[0].Alpha)
	if n < least {
		fmt.Fprintf(t.err, "that is too few to tell any effect apart: at least %d blocks are needed, about %s\n",
			least, (time.Duration(least) * block).Round(time.Second))
		return
	}
	floor, blocks := calibratedFloor(s.Primary.Metric)
	if blocks == 0 {
		fmt.Fprintf(t.err, "how small an effect they tell apart is not known here: run `tare calibrate` once\n")
		return
	}
	if n < blocks {
		floor *= math.Sqrt(float64(blocks) / float64(n))
	}
	metric, _ := study.MetricNamed(s.Primary.Metric)
	fmt.Fprintf(t.err, "they should tell apart an effect on %s of about %s\n", metric.Title, unit.Change(math.Expm1(2*floor)))
}
