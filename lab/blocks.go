package lab

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/tally"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
)

// measure runs the pilot and then blocks until a look decides, the cap or the
// budget is reached, or the context ends.
func (r *runner) measure(ctx context.Context) error {
	r.begun = time.Now()
	if err := r.pilot(ctx); err != nil {
		return err
	}
	looks := r.looks()
	last := looks[len(looks)-1]
	plan := study.NewPlan(r.Study, r.Seed, last)
	before := r.blocksDone()
	for _, look := range looks {
		if look < before {
			continue // taken by an earlier session: with more blocks it would be another look, at no price
		}
		for done := r.blocksDone(); done < look; done++ {
			if done > 0 && r.overBudget(r.Study.CellsPerBlock(), done >= looks[0]) {
				r.outcome = "budget"
				return nil
			}
			if err := r.block(ctx, plan.Block(done), r.ahead(last-done)); err != nil {
				return err
			}
			if why := r.refused(); why != "" {
				r.outcome = "refused"
				r.reportEvent(Event{Stage: Ended, Text: "stopping early: " + why})
				return nil
			}
		}
		if !slices.Contains(r.manifest.Early, look) { // else it was taken, of what there is
			if err := r.makeUp(ctx, look); err != nil {
				return err
			}
		}
		decided, err := r.analyseBlocks(look)
		if err != nil {
			return err
		}
		if decided {
			r.outcome = "decided"
			return nil
		}
	}
	r.outcome = "cap"
	return nil
}

// leastTried is the number of blocks after which a run may stop for its refused trials.
const leastTried = 2

// refused says that most trials so far do not count, or not for what decides, and why: the
// blocks to come would not fare better. It is "" where most do.
func (r *runner) refused() string {
	if r.blocksDone() < leastTried {
		return ""
	}
	if t := tally.Of(r.trials); 2*t.Valid < t.Total {
		return t.Refusal()
	}
	if r.Decided == nil { // else the study's primary metric need not be what decides
		return verdict.Lagging(r.Study, r.trials)
	}
	return ""
}

// looks are the numbers of blocks after which the run looks: those that its record
// plans, cut at the cap.
func (r *runner) looks() []int {
	var at []int
	for _, look := range Looks(&r.manifest.Study, 0, r.manifest.Early...) {
		if r.Blocks == 0 || look.Blocks < r.Blocks {
			at = append(at, look.Blocks)
		}
	}
	if r.Blocks > 0 {
		at = append(at, r.Blocks)
	}
	return at
}

// Looks are the looks of a run of at most so many blocks, 0 for the study's own
// number, as [stats.LooksAt] shares the error rate out over them: one after too few
// blocks to exclude anything is not taken. Where that is true of the last one, too,
// it stands alone. Those after early numbers of blocks were taken by sessions that ended there.
func Looks(s *study.Study, blocks int, early ...int) []stats.Look {
	at := s.LooksUpTo(blocks)
	looks, err := stats.LooksAt(at, early...)
	if err != nil {
		return []stats.Look{{Blocks: at[len(at)-1], Alpha: stats.StudyAlpha}}
	}
	return looks
}

// keepEarly notes that the run on record had ended between two looks, and was judged there
// at the level of the next one, which that has spent. Too few blocks to decide anything at
// that level, by the interval for equivalence, have spent nothing.
func (r *runner) keepEarly() error {
	done := r.blocksDone()
	looks := Looks(&r.manifest.Study, 0, r.manifest.Early...)
	next := slices.IndexFunc(looks, func(l stats.Look) bool { return l.Blocks >= done })
	if o := r.manifest.Outcome; o == "" || o == "interrupted" || next < 0 || looks[next].Blocks == done ||
		done < stats.BlocksForFamily(1, 2*looks[next].Alpha) {
		return nil
	}
	left := "none is left, and more blocks need a new run"
	if next+1 < len(looks) {
		left = fmt.Sprintf("the next is at %d", looks[next+1].Blocks)
	}
	r.reportEvent(Event{Stage: Ended, Text: fmt.Sprintf("the look at %d blocks was taken after %d, where the run had ended; %s", looks[next].Blocks, done, left)})
	r.manifest.Early = append(r.manifest.Early, done)
	return r.writer.Update(func(m *record.Manifest) { m.Early = slices.Clone(r.manifest.Early) })
}

// WithinPlan refuses a cap of blocks that is no look of a run on record: these spend
// the whole error rate, so that one more would come on top of it, be it after more
// blocks or between two. A cap at which no interval could exclude anything is none. Early are
// the looks that were taken where a session ended.
func WithinPlan(s *study.Study, blocks int, early ...int) error {
	if blocks < stats.BlocksForFamily(1, stats.StudyAlpha) {
		return nil
	}
	var planned []string
	for _, look := range Looks(s, 0, early...) {
		if look.Blocks == blocks {
			return nil
		}
		planned = append(planned, strconv.Itoa(look.Blocks))
	}
	return fmt.Errorf("the run is planned to look after %s blocks, which share out the whole error rate of 5 %%: none is left for a look at %d", strings.Join(planned, ", "), blocks)
}

// blocksDone is the number of planned blocks of which trials are on record. A
// block that an interruption cut short is not gone on with, since its trials
// would no longer be close in time: what it lacks is made up later.
func (r *runner) blocksDone() int { return record.PlannedBlocks(r.trials) }

// nextBlock is the number that no block has yet.
func (r *runner) nextBlock() int {
	next := 0
	for _, t := range r.trials {
		next = max(next, t.Block+1)
	}
	return next
}

// overBudget reports whether one more block of so many cells would end after the budget. Once
// a first look was possible, a planned block leaves room for the captures that follow it.
// They explain a decision and are worth nothing without one.
func (r *runner) overBudget(cells int, looked bool) bool {
	d := time.Duration(cells) * r.perTrial()
	if looked {
		d += r.capturing(r.Study.Captures(r.Seed))
	}
	return r.exceeds(d)
}

// Fit is how many blocks end within a time: up to the first look, which is so many blocks away,
// they come before the captures.
func Fit(within, block, captures time.Duration, first int) int {
	return max(0, int((within-captures)/block), min(first, int(within/block)))
}

// ahead is how many of so many planned blocks the budget has time for; one begins anyhow.
func (r *runner) ahead(blocks int) int {
	if r.Budget == 0 {
		return blocks
	}
	block := time.Duration(r.Study.CellsPerBlock()) * r.perTrial()
	fit := Fit(r.Budget-time.Since(r.begun), block, r.capturing(r.Study.Captures(r.Seed)), r.looks()[0]-r.blocksDone())
	return max(1, min(blocks, fit))
}

// exceeds reports whether what takes so long would end after the budget.
func (r *runner) exceeds(d time.Duration) bool {
	return r.Budget > 0 && time.Since(r.begun)+d > r.Budget
}

// perTrial is the mean time of the trials of this session, or what the
// declaration lets expect.
func (r *runner) perTrial() time.Duration {
	if r.ran == 0 {
		return study.Estimate(r.Study, 1, Overhead) / time.Duration(r.Study.CellsPerBlock())
	}
	return r.took / time.Duration(r.ran)
}

// Overhead is the time that a trial takes beyond its warm-up, measured part
// and loop: start, first answer, stop.
const Overhead = 250 * time.Millisecond

// Besides is about how long a run takes besides its blocks and its builds: the
// pilot before them and the captures after them.
func Besides(s *study.Study) time.Duration {
	pilot := pilotFor + pilotFor/4 + Overhead
	all := study.EstimateCaptures(s, Overhead)
	for _, w := range s.Workloads {
		all += time.Duration(len(s.ArmsOf(w))) * pilot
	}
	return all
}

// block runs cells in their order as a block of its own; to go is the number of
// planned blocks left, this one included, for the estimate of time.
func (r *runner) block(ctx context.Context, cells []study.Cell, toGo int) error {
	number := r.nextBlock()
	for i, c := range cells {
		c.Block = number
		left := time.Duration(len(cells)-i+(toGo-1)*r.Study.CellsPerBlock()) * r.perTrial()
		r.reportEvent(Event{
			Stage: Running, Arm: c.Arm, Workload: c.Workload, Block: number + 1, Left: left,
			Trials: r.ran + len(cells) - i + (toGo-1)*r.Study.CellsPerBlock(),
			Text:   fmt.Sprintf("block %d: %s, %s", number+1, c.Arm, c.Workload),
		})
		if err := r.run(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// run executes a cell and puts it on record.
func (r *runner) run(ctx context.Context, c study.Cell) error {
	begun := time.Now()
	t, hists, err := r.trial(ctx, c)
	if err != nil {
		return fmt.Errorf("running trial %d: arm %s, workload %s: %w", len(r.trials), c.Arm, c.Workload, err)
	}
	if err := r.writer.Append(t, hists); err != nil {
		return err
	}
	r.trials = append(r.trials, t)
	r.took += time.Since(begun)
	r.ran++
	r.reportEvent(Event{Stage: Ended, Arm: c.Arm, Workload: c.Workload, Block: c.Block + 1, Result: &t})
	return nil
}

// analyseBlocks analyses what is there and reports whether the question is decided.
func (r *runner) analyseBlocks(blocks int) (bool, error) {
	at := r.manifest
	at.Outcome = record.AtLook
	a, err := verdict.Analyse(&record.Run{Dir: r.Dir, Manifest: at, Trials: r.trials})
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", unit.Plural(blocks, "block"), err)
	}
	r.reportEvent(Event{Stage: Looking, Block: blocks, Text: fmt.Sprintf("look at %s: %s", unit.Plural(blocks, "block"), a.Headline)})
	if r.Decided == nil {
		return a.Decided(), nil
	}
	return r.Decided(a), nil
}
