package http1

import "github.com/tarehq/tare/load/internal/check"

// Outcome is what a parser made of an answer.
type Outcome struct {
	Status         int
	Keep, Verified bool
	Read           int  // bytes of the input that belong to it
	Done           bool // whole
	Held           int  // bytes of room for what was held back
}

// ParseAnswer reads an answer to a request with method in input, which comes
// step bytes at a time. The error is the parser's.
func ParseAnswer(method string, c check.Check, input string, step int) (Outcome, error) {
	return AnswerParser(method, c, 1<<20)([]byte(input), step)
}

// AnswerParser is ParseAnswer for many answers to one target, of up to limit
// bytes each.
func AnswerParser(method string, c check.Check, limit int64) func(input []byte, step int) (Outcome, error) {
	p := NewParser([]Target{{method == "HEAD", &c}}, limit)
	var st Answer
	return func(input []byte, step int) (a Outcome, err error) {
		st.Begin(0)
		for len(input) > 0 && !a.Done && err == nil {
			var n int
			n, a.Done, err = p.Feed(&st, input[:min(step, len(input))])
			a.Read, a.Held = a.Read+n, max(a.Held, cap(st.held))
			input = input[min(step, len(input)):]
		}
		if err == nil && !a.Done {
			a.Done = p.EOF(&st)
		}
		if a.Done {
			a.Status, a.Keep, a.Verified = st.Status, st.Keep, st.Verified
		}
		return a, err
	}
}

// ParsedInTurn reads n answers to targets that differ in what they verify, in turn,
// twice, and returns how many headers were taken for another target's, and the
// room that the parser keeps for headers.
func ParsedInTurn(n int) (wrong, places int, err error) {
	targets := make([]Target, n)
	for i := range targets {
		targets[i].Check = &check.Check{Status: 200 + i, Length: -1}
	}
	p := NewParser(targets, 1<<20)
	var st Answer
	for i := range 2 * n {
		st.Begin(i % n)
		if _, _, err := p.Feed(&st, []byte("HTTP/1.1 204 No Content\r\n\r\n")); err != nil {
			return 0, 0, err
		}
		if st.Verified != (i%n == 4) {
			wrong++
		}
	}
	return wrong, len(p.last), nil
}
