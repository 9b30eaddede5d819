// Package plan says which layers the arms of the study chain put around their
// handlers, so that frameworks which each have their own kind of layer are held
// to the same work.
//
//	GET /noop    layers that only call the next
//	GET /value   layers that each keep a value of their own; the handler looks up the outermost's and the innermost's
//	GET /record  layers that each look at the answer's status afterwards
//
// Each path has the same number of layers around a handler that answers [Body].
// A layer does what its framework's authors recommend for the purpose.
package plan

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
)

// Most is the largest number of layers.
const Most = 50

// The paths that arms answer.
const (
	Noop   = "/noop"
	Value  = "/value"
	Record = "/record"
)

// JSON is the type of the answer.
const JSON = "application/json; charset=utf-8"

// Body returns the answer, 1 KiB. The caller must not change it.
func Body() []byte {
	const frame = `{"data":""}`
	return []byte(`{"data":"` + strings.Repeat("x", 1024-len(frame)) + `"}`)
}

// Answer answers with status 200 in the same way for all whose handlers get an
// http.ResponseWriter, without allocating. It is safe for concurrent use.
type Answer struct {
	contentType []string
	body        []byte
}

// NewAnswer returns the answer.
func NewAnswer() *Answer { return &Answer{[]string{JSON}, Body()} }

// Write sends the answer.
func (a *Answer) Write(w http.ResponseWriter) {
	w.Header()["Content-Type"] = a.contentType
	_, _ = w.Write(a.body) // fails when the client has gone
}

// Depth is a number of layers. As a flag's value it is at most Most.
type Depth int

// Flag defines the flag -depth of an arm, to be read after flag.Parse. Its
// default is 0.
func Flag() *Depth {
	var d Depth
	flag.Var(&d, "depth", fmt.Sprintf("`layers` around each handler, at most %d", Most))
	return &d
}

// Set makes d the number in s.
func (d *Depth) Set(s string) error {
	var n int
	if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil || n < 0 || n > Most {
		return fmt.Errorf("want a whole number from 0 to %d", Most)
	}
	*d = Depth(n)
	return nil
}

// String returns the number.
func (d *Depth) String() string { return fmt.Sprint(int(*d)) }

// User is what layers keep.
type User struct{ Name string }

// Users returns one for each of n layers.
func Users(n Depth) []*User {
	all := make([]*User, n)
	for i := range all {
		all[i] = &User{fmt.Sprint("user ", i)}
	}
	return all
}

// Names returns the names by which frameworks keep values that know them by
// name.
func Names(n Depth) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("user ", i)
	}
	return all
}

// Saw is called by a layer with the status that it saw. It panics if that is
// not what the handler answered: a layer that cannot see it would be compared
// for nothing.
func Saw(status int) {
	if status != http.StatusOK {
		panic(fmt.Sprintf("a layer saw the status %d", status))
	}
}

// Found is called by the handler with what it looked up. It panics if that is
// not what the layers kept.
func Found(got, want *User) {
	if got != want {
		panic(fmt.Sprintf("found the value %v, want %v", got, want))
	}
}
