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
