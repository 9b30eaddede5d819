package study

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Cell is one trial of a plan: an arm under a workload in a block.
type Cell struct {
	Block    int // from 0
	Workload string
	Arm      string
	Twin     bool // the control's second trial in the block
}

// Plan is the order in which a run's trials are made.
type Plan []Cell

// NewPlan orders the trials of so many blocks. In each block every workload
// comes once, the first one rotating from block to block; under each workload
// every arm comes once, the control and its twin among them, in one random
// order. The same study and seed give the same plan, and a longer plan begins
// with the shorter one.
func NewPlan(s *Study, seed uint64, blocks int) Plan {
	var p Plan
	for b := range blocks {
		// A generator of its own for each block: what one block needs of it
		// does not move the others.
		rng := rand.New(rand.NewPCG(seed, uint64(b)))
		for i := range s.Workloads {
			w := s.Workloads[(b+i)%len(s.Workloads)]
			cells := s.cells(w)
			rng.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
			for _, c := range cells {
				c.Block = b
				p = append(p, c)
			}
		}
	}
	return p
}

// Block returns the trials of block b, in order; none where the plan has no
// such block.
func (p Plan) Block(b int) []Cell {
	first, _ := slices.BinarySearchFunc(p, b, func(c Cell, b int) int { return cmp.Compare(c.Block, b) })
	next, _ := slices.BinarySearchFunc(p, b+1, func(c Cell, b int) int { return cmp.Compare(c.Block, b) })
	return p[first:next]
}

// ArmsOf returns the arms that run under a workload, in the study's order.
func (s *Study) ArmsOf(w Workload) []Arm {
	if len(w.Arms) == 0 {
		return s.Arms
	}
	return slices.DeleteFunc(slices.Clone(s.Arms), func(a Arm) bool { return !slices.Contains(w.Arms, a.Name) })
}

// CellsPerBlock is the number of trials in one block, twins included.
func (s *Study) CellsPerBlock() int {
	n := 0
	for _, w := range s.Workloads {
		n += len(s.cells(w))
	}
	return n
}

// cells are a workload's trials in any one block, in the order of the arms.
func (s *Study) cells(w Workload) []Cell {
	var cells []Cell
	for _, a := range s.ArmsOf(w) {
		cells = append(cells, Cell{Workload: w.Name, Arm: a.Name})
		if s.Twin && a.Name == s.Control {
			cells = append(cells, Cell{Workload: w.Name, Arm: a.Name, Twin: true})
		}
	}
	return cells
}

// Estimate is how long so many blocks take, if each trial takes overhead
// (start, verification, stop) besides what the study asks for and none is run
// again. Building and pilots are not in it.
func Estimate(s *Study, blocks int, overhead time.Duration) time.Duration {
	var block time.Duration
	for _, w := range s.Workloads {
		trial := s.Trial.WarmUpOr() + s.Measured(w) + w.Loop + w.idling() + overhead
		if s.Kind == Generators { // they are told whole seconds, and warm up within these
			trial = time.Duration(math.Ceil(s.Measured(w).Seconds()))*time.Second + overhead
		}
		block += time.Duration(len(s.cells(w))) * trial
	}
	return time.Duration(blocks) * block
}

// IdleSettle is how long idle connections are left alone before what they take
// is read: a server may give back memory some time after an answer.
const IdleSettle = 3 * time.Second

// idling is how long opening idle connections and letting them settle takes.
func (w Workload) idling() time.Duration {
	if w.Idle == 0 {
		return 0
	}
	const each = 100 * time.Microsecond
	return time.Duration(w.Idle)*each + IdleSettle
}
