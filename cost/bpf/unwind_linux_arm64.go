package bpf

// untouched is the place in the stack before any function has returned: only then one may
// return by the link register.
const untouched = -1

// linkRegister is the sample's link register: where the function returns to unless it has written
// that down.
func linkRegister(s *samplerSample) uint64 { return s.Top[len(s.Top)-1] }

// returns is where a function returns to whose frame takes so many words of the stack at a
// place, and the place of its caller's.
func returns(s *samplerSample, stack []uint64, at, words int) (back uint64, next int, ok bool) {
	if at == untouched && words == 0 {
		return linkRegister(s), 0, true
	}
	at = max(0, at)
	if words == 0 || at+words > len(stack) {
		return 0, 0, false
	}
	return stack[at], at + words, true
}

// hidden returns the return address that a sample's chain of frame pointers lacks: that in
// the link register of a function without a frame, or that on top of the stack, below which
// the frame pointer points once it is set up.
func (p *process) hidden(s *samplerSample) (uint64, bool) {
	if p.table == nil {
		return 0, false
	}
	delta, ok := p.deltas.At(p.table, s.Ip-p.bias)
	switch {
	case !ok:
		return 0, false
	case delta == 0:
		return linkRegister(s), true
	case s.TopBytes == 0 || s.Bp == s.Sp-word:
		return 0, false
	}
	return s.Top[0], true
}
