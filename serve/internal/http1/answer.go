package http1

import "net/http"

// Answer is the head of an answer. Of Head it has Proto, Minor, Length and HasLength,
// Close, KeepAlive and Upgrade, as of a request; a Length of 0 without HasLength says that
// neither a length nor chunks are declared.
type Answer struct {
	Head
	Status int
	Text   string // status and reason, such as "200 OK"
}

var errStatusLine = &Error{502, "malformed status line"}

// Parse reads s, a whole head as [End] measured it, and puts its fields into h, which must
// be empty, but for Transfer-Encoding. It refuses what [Head.Parse] does, with an
// [*Error]: an answer of which the length is in doubt is of no use.
func (a *Answer) Parse(s string, h http.Header, o *Options) error {
	*a = Answer{}
	r := reader{s: s, lenient: &o.Lenient, h: h, left: o.maxFields()}
	if err := a.statusLine(&r); err != nil {
		return err
	}
	f := framing{minor: a.Minor}
	for {
		name, id, val, err := r.field()
		if err != nil {
			return err
		}
		switch {
		case name == "":
			return a.frame(&f, &r)
		case id == nameHost || id == nameExpect:
			r.add(name, otherName, val) // it means nothing here
		case id == otherName || id >= firstPlain:
			r.add(name, id, val)
		default:
			if err := a.special(&r, &f, id, val); err != nil {
				return err
			}
		}
	}
}

// statusLine reads version, status and reason (RFC 9112, section 4).
func (a *Answer) statusLine(r *reader) error {
	end := control(r.s, 0)
	line := r.s[:end]
	next, ok := r.lineEnd(end)
	if !ok || len(line) < len("HTTP/1.1 200") || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return errStatusLine
	}
	if err := a.version(line[:8]); err != nil {
		return err
	}
	for _, c := range []byte(line[9:12]) {
		if !is(c, digitChar) {
			return errStatusLine
		}
		a.Status = a.Status*10 + int(c-'0')
	}
	if a.Status < 100 {
		return errStatusLine
	}
	a.Text = line[9:]
	r.i = next
	return nil
}
