package script

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

// ErrUntaken says that a value is not in an answer.
var ErrUntaken = errors.New("the value cannot be taken")

// Build is the request of a user who knows these values. The error is ErrUnfilled where one
// that it needs is unset.
func (q *Request) Build(known Values) (*http.Request, error) {
	url, err := q.url.fill(known, true)
	if err != nil {
		return nil, err
	}
	text, err := q.body.fill(known, false)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if text != "" {
		body = strings.NewReader(text)
	}
	req, err := http.NewRequest(q.method, url, body)
	if err != nil {
		return nil, err
	}
	for _, f := range q.header {
		v, err := f.value.fill(known, false)
		if err != nil {
			return nil, err
		}
		if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return nil, fmt.Errorf("header %s: the value has a control character, such as a line end", f.name)
		}
		req.Header.Set(f.name, v)
		if strings.EqualFold(f.name, "Host") {
			req.Host = v
		}
	}
	if _, given := req.Header["User-Agent"]; !given {
		req.Header.Set("User-Agent", "tare")
	}
	return req, nil
}

// Look checks an answer whose body was read, and takes the values into known. kept are the
// cookies that the user keeps for the URL. The error says what is wrong with the answer; it
// wraps ErrUntaken where a value is not in it.
func (q *Request) Look(res *http.Response, body []byte, kept []*http.Cookie, w Witness) error {
	a := &answer{Response: res, body: body, cookies: kept}
	if err := q.check.verify(a, w.Rand); err != nil {
		return err
	}
	for i := range q.takes {
		t := &q.takes[i]
		text, ok := t.from(a, w.Rand)
		w.Known[t.slot] = value{text, ok}
		if !ok && !t.optional {
			return fmt.Errorf("%w: %s", ErrUntaken, t.name)
		}
	}
	return nil
}

// Witness is the user who looks.
type Witness struct {
	Known Values
	Rand  *rand.Rand
}
