package stats

// Components are the variances that add up to that of a single slice, by where
// they come from. They are in the square of the values' unit; of logarithms,
// so a standard deviation of 0.02 is 2 %.
type Components struct {
	Block   float64 // between blocks: what changes over minutes, and pairing removes
	Process float64 // between fresh processes of one block: what only more blocks average out
	Within  float64 // between slices of one trial: what a longer trial averages out
}

// VarianceComponents splits the variance of x: a block holds the trials of
// identical arms in it, a trial the values of its slices. With a single trial
// in every block, Process cannot be told from Block and is reported in it.
// Numbers of trials and slices may differ. Estimates that come out negative,
// as they do by chance, are 0; a part that the data cannot show is NaN.
//
// Source: the moment estimators of the nested random model, Searle, Casella
// and McCulloch, Variance components, 1992, section 3.6 and appendix.
func VarianceComponents(x [][][]float64) Components {
	s := nestedSums(x)
	var c Components
	c.Within = s.within / float64(s.slices-s.trials)
	process := s.process / float64(s.trials-s.blocks)
	block := s.block / float64(s.blocks-1)
	n := float64(s.slices)
	trialsIn := (n - s.perBlock) / float64(s.trials-s.blocks) // slices behind a trial's mean
	c.Process = max(0, (process-c.Within)/trialsIn)
	if s.trials == s.blocks {
		c.Process = 0
	}
	leak := (s.perBlock - s.squares/n) / float64(s.blocks-1)
	blocksIn := (n - s.blockSquares/n) / float64(s.blocks-1) // slices behind a block's mean
	c.Block = max(0, (block-c.Within-leak*c.Process)/blocksIn)
	return c
}

// nested are the sums of squares of a nested design and the sizes that their
// expectations depend on.
type nested struct {
	blocks, trials, slices int
	within, process, block float64 // sums of squared deviations
	squares                float64 // Σ n², n the slices of a trial
	blockSquares           float64 // Σ n², n the slices of a block
	perBlock               float64 // Σ over blocks of (Σ n² of its trials)/(its slices)
}

func nestedSums(x [][][]float64) nested {
	var s nested
	var all float64
	type level struct{ sum, n float64 }
	var blocks []level
	for _, trials := range x {
		var b level
		var means []level
		var squares float64
		for _, t := range trials {
			if len(t) == 0 {
				continue
			}
			total, n := sum(t), float64(len(t))
			for _, v := range t {
				s.within += (v - total/n) * (v - total/n)
			}
			means = append(means, level{total, n})
			b.sum += total
			b.n += n
			squares += n * n
		}
		if b.n == 0 {
			continue
		}
		for _, m := range means {
			s.process += m.n * (m.sum/m.n - b.sum/b.n) * (m.sum/m.n - b.sum/b.n)
		}
		s.trials += len(means)
		s.slices += int(b.n)
		s.squares += squares
		s.blockSquares += b.n * b.n
		s.perBlock += squares / b.n
		blocks = append(blocks, b)
		all += b.sum
	}
	s.blocks = len(blocks)
	for _, b := range blocks {
		mean := all / float64(s.slices)
		s.block += b.n * (b.sum/b.n - mean) * (b.sum/b.n - mean)
	}
	return s
}
