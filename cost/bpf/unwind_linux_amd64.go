package bpf

// untouched is the place in the stack before any function has returned.
const untouched = 0

// returns is where a function returns to whose frame takes so many words of the stack at a
// place, and the place of its caller's.
func returns(_ *samplerSample, stack []uint64, at, words int) (back uint64, next int, ok bool) {
	if at += words; at >= len(stack) {
		return 0, 0, false
	}
	return stack[at], at + 1, true
}

// hidden returns the return address that a sample's chain of frame pointers lacks.
func (p *process) hidden(s *samplerSample) (uint64, bool) {
	if p.table == nil || s.TopBytes == 0 {
		return 0, false
	}
	delta, ok := p.deltas.At(p.table, s.Ip-p.bias)
	if !ok || delta%word != 0 || delta/word >= len(s.Top) || s.Bp == s.Sp+uint64(delta)-word {
		return 0, false
	}
	return s.Top[delta/word], true
}
