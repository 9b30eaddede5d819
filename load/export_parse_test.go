package load

// Answer is what a parser made of an answer.
type Answer struct {
	Status         int
	Keep, Verified bool
	Read           int  // bytes of the input that belong to it
	Done           bool // whole
	Held           int  // bytes of room for what was held back
}

// ParseAnswer reads an answer to a request with method in input, which comes
// step bytes at a time. The error is the parser's.
func ParseAnswer(method string, v Verify, input string, step int) (Answer, error) {
	return AnswerParser(method, v, 1<<20)([]byte(input), step)
}

// AnswerParser is ParseAnswer for many answers to one target, of up to limit
// bytes each.
func AnswerParser(method string, v Verify, limit int64) func(input []byte, step int) (Answer, error) {
	s, err := newScript(&Options{Targets: []Target{{Method: method, URL: "http://a/", Verify: v}}})
	if err != nil {
		panic(err)
	}
	p := newParser(s, limit)
	var st answer
	return func(input []byte, step int) (a Answer, err error) {
		st.begin(0)
		for len(input) > 0 && !a.Done && err == nil {
			var n int
			n, a.Done, err = p.feed(&st, input[:min(step, len(input))])
			a.Read, a.Held = a.Read+n, max(a.Held, cap(st.held))
			input = input[min(step, len(input)):]
		}
		if err == nil && !a.Done {
			a.Done = p.eof(&st)
		}
		if a.Done {
			a.Status, a.Keep, a.Verified = st.status, st.keep, st.verified
		}
		return a, err
	}
}

// ParsedInTurn reads n answers to targets that differ in what they verify, in turn,
// twice, and returns how many headers were taken for another target's, and the
// room that the parser keeps for headers.
func ParsedInTurn(n int) (wrong, places int, err error) {
	o := Options{Targets: make([]Target, n)}
	for i := range o.Targets {
		o.Targets[i] = Target{URL: "http://a/", Verify: Verify{Status: 200 + i}}
	}
	s, err := newScript(&o)
	if err != nil {
		return 0, 0, err
	}
	p := newParser(s, 1<<20)
	var st answer
	for i := range 2 * n {
		st.begin(i % n)
		if _, _, err := p.feed(&st, []byte("HTTP/1.1 204 No Content\r\n\r\n")); err != nil {
			return 0, 0, err
		}
		if st.verified != (i%n == 4) {
			wrong++
		}
	}
	return wrong, len(p.last), nil
}
