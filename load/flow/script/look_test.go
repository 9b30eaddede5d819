package script_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/tarehq/tare/load/flow/script"
)

// look has a step look at an answer, and returns what the next request then asks for.
func look(t *testing.T, step, body string, header http.Header, kept ...*http.Cookie) (string, error) {
	t.Helper()
	f := parse(t, "      - {name: a, url: /, "+step+"}\n      - {name: b, url: \"/{{.user}}\", header: {X: \"{{.v}}\"}}\n")
	w, known, rng := script.Walk{Program: f.Programs()[0]}, f.Know(), rand.New(rand.NewPCG(1, 1))
	f.Begin(1, f.Know(), known)
	q, _, _ := w.Next(known, rng)
	res := &http.Response{StatusCode: 200, Header: header}
	if err := q.Look(res, []byte(body), kept, script.Witness{Known: known, Rand: rng}); err != nil {
		return "", err
	}
	q, _, _ = w.Next(known, rng)
	req, err := q.Build(known)
	if err != nil {
		return "", err
	}
	return req.Header.Get("X"), nil
}

func TestTake(t *testing.T) {
	const body = `{"id": 12345678901234567890, "a": {"b": [{"c": "x"}, {"c": true}]}, "null": null, "big": 1e3, "csrf": "t<k>n"}`
	header := http.Header{"X-Token": {"t 1"}, "Set-Cookie": {"sid=s1; Path=/"}}
	for _, c := range []struct{ source, want string }{
		{"json: id", "12345678901234567890"},
		{"json: \"$.a.b[0].c\"", "x"},
		{"json: \"a.b[-1].c\"", "true"},
		{"json: \"a.b[1]\"", `{"c":true}`},
		{"json: big", "1e3"},
		{"header: x-token", "t 1"},
		{"cookie: sid", "s1"},
		{"cookie: old", "o1"},
		{"regexp: '\"csrf\": \"([^\"]*)\"'", "t<k>n"},
		{"regexp: 't<.>n'", "t<k>n"},
		{"json: \"null\"", ""}, {"json: \"a.b[2].c\"", ""}, {"json: \"a.b.c\"", ""}, {"json: \"id.x\"", ""}, {"json: \"[0]\"", ""},
		{"header: x-other", ""}, {"cookie: none", ""}, {"regexp: zzz", ""}, {"regexp: 't<k>(x)?'", ""},
	} {
		got, err := look(t, "take: {v: {"+c.source+"}}", body, header, &http.Cookie{Name: "old", Value: "o1"})
		if got != c.want || (c.want == "") != errors.Is(err, script.ErrUntaken) {
			t.Errorf("%s: got %q, %v, want %q", c.source, got, err, c.want)
		}
	}
	for range 20 {
		if got, err := look(t, "take: {v: {json: \"[any]\"}}", `["p", "q"]`, nil); err != nil || got != "p" && got != "q" {
			t.Errorf("any of p and q: got %q, %v", got, err)
		}
	}
	if _, err := look(t, "take: {v: {json: id}}", `{"id": 1} x`, nil); !errors.Is(err, script.ErrUntaken) {
		t.Errorf("text behind the JSON: got %v, want ErrUntaken", err)
	}
	if _, err := look(t, "take: {v: {json: id, optional: true}}", `{}`, nil); !errors.Is(err, script.ErrUnfilled) {
		t.Errorf("an optional value that is then used: got %v, want ErrUnfilled", err)
	}
	for _, v := range []string{`a\r\nHost: b`, `a\u0001`, `\u007f`} { // the transport would refuse them, as if the service had failed
		if _, err := look(t, "take: {v: {json: v}}", `{"v": "`+v+`"}`, nil); err == nil || !strings.Contains(err.Error(), "line end") {
			t.Errorf("the value %s in a header: got %v", v, err)
		}
	}
}

func TestCheck(t *testing.T) {
	header := http.Header{"A": {"1", "2"}}
	for check, want := range map[string]string{
		"contains: ell":           "",
		"contains: elk":           `the body does not contain "elk"`,
		"matches: \"l+o\"":        "",
		"matches: \"^e\"":         "does not match",
		"header: {A: \"2\"}":      "",
		"header: {A: \"3\"}":      `header A is ["1" "2"], not "3"`,
		"status: [201, 200]":      "",
		"status: [201]":           "status 200 is not among [201]",
		"json: {\"x[0]\": hello}": "the body is not JSON",
	} {
		_, err := look(t, "check: {"+check+"}, take: {v: {regexp: h}}", "hello", header)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", check, err, want)
		}
	}
	for path, held := range map[string]bool{"n: 1": true, "n: 2": false, "s: a": true, "t: true": true, "none: a": false, "n: 1.5": false, "id: 9007199254740993": true, "id: 9007199254740992": false} {
		if _, err := look(t, "check: {json: {"+path+"}}, take: {v: {json: n}}", `{"n": 1, "s": "a", "t": true, "id": 9007199254740993}`, nil); (err == nil) != held {
			t.Errorf("JSON %s: got %v, want it to hold: %t", path, err, held)
		}
	}
}
