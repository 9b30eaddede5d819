package exectrace

import (
	"io"
	"time"

	"github.com/tarehq/tare/cost"
)

// Options say which requests are slow. The zero value takes the slowest
// hundredth and describes 10 of them one by one.
type Options struct {
	SlowerThan time.Duration // a request is slow from here on; 0: the slowest hundredth is
	Top        int           // how many of the slowest to describe one by one; 0: 10, negative: none
	Rules      *cost.Rules   // what [Trace.Learn] learned of the same trace; nil: owners are found by single stacks
}

// Requests is what a trace says of the requests that a server answered meanwhile.
// Its JSON is what tare trace --json prints.
type Requests struct {
	Duration   time.Duration `json:"duration_ns"`
	Count      int           `json:"requests"` // seen from begin to end
	Cut        int           `json:"cut"`      // begun before the trace, or not ended within it
	Quantiles  []Quantile    `json:"quantiles"`
	SlowerThan time.Duration `json:"slower_than_ns"` // the bound: as asked, or as the slowest hundredth has it
	Slow       Group         `json:"slow"`
	Fast       Group         `json:"fast"`
	Slowest    []Request     `json:"slowest"` // the slowest first, slow or not
	Warnings   []string      `json:"warnings,omitempty"`
}

// Quantile is a duration that a share of the requests did not exceed, within
// 2.2 %.
type Quantile struct {
	Q        float64       `json:"q"`
	Duration time.Duration `json:"duration_ns"`
}

// Group is requests taken together. The Time of its Parts adds up to Time.
type Group struct {
	Count     int           `json:"requests"`
	Cut       int           `json:"cut"` // of Count: took longer than was seen of them
	Time      time.Duration `json:"time_ns"`
	Collector time.Duration `json:"during_collection_ns"` // of Time: while the collector was marking
	Stopped   time.Duration `json:"world_stopped_ns"`     // of Time: while all goroutines were held
	Parts     []Part        `json:"parts"`                // the largest first
	Handlers  []Handler     `json:"handlers"`             // the most requests first
}

// Cause says what time was spent on.
type Cause struct {
	State    State  `json:"state"`
	Owner    Owner  `json:"owner,omitzero"`
	At       string `json:"at,omitempty"`       // the function, as the linker names it
	Released *Owner `json:"released,omitempty"` // who ended a wait for a lock or channel, if that was a goroutine
	By       string `json:"by,omitempty"`       // the function that ended it
}

// Part is time spent on one cause.
type Part struct {
	Cause
	Time     time.Duration `json:"time_ns"`
	Times    int           `json:"times"`
	Requests int           `json:"requests"` // in how many requests
}

// Owner is who a part is charged to.
type Owner struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Where   string `json:"where,omitempty"`   // file
	Package string `json:"package,omitempty"` // its import path; the folder of its file where that is not known
}

// Handler is how many requests came to one handler: the innermost that was seen, or
// a middleware where a request never left off running inside it.
type Handler struct {
	Owner    Owner `json:"owner,omitzero"` // the zero value: none was seen, as when it never left off running
	Requests int   `json:"requests"`
}

// Request is one request. The Duration of its Segments adds up to Duration.
type Request struct {
	Goroutine int64         `json:"goroutine"`
	Begin     time.Duration `json:"begin_ns"` // from the trace's begin
	Duration  time.Duration `json:"duration_ns"`
	Begun     bool          `json:"begun_before,omitempty"` // before the trace: it took longer than this
	Unended   bool          `json:"unended,omitempty"`      // at the trace's end: it takes longer than this
	Handler   Owner         `json:"handler,omitzero"`
	Log       string        `json:"log,omitempty"` // what the service wrote of it into the trace
	Collector time.Duration `json:"during_collection_ns"`
	Stopped   time.Duration `json:"world_stopped_ns"`
	Segments  []Segment     `json:"segments"`
}

// Segment is a time within a request.
type Segment struct {
	Cause
	Begin     time.Duration `json:"begin_ns"` // from the request's begin
	Duration  time.Duration `json:"duration_ns"`
	Elsewhere bool          `json:"other_goroutine,omitempty"` // on a goroutine that the request had started and waited for
	Merged    int           `json:"merged,omitempty"`          // so many short segments as one, called by the longest
}

// ReadRequests reads a trace as runtime/trace writes it and accounts for every
// request in it that a server it knows answered: net/http (chi, gin, echo …, and
// HTTP/2), tare's serve, fasthttp (fiber …) and gRPC.
//
// A request of HTTP/1 begins when its connection's goroutine is woken by its first
// bytes, or looks for them and finds some, and ends when the goroutine looks for
// the next; those of HTTP/2 begin and end with their goroutines, and those of gRPC too,
// or with their being handed to a worker. Tare's serve says where each begins. Requests that were pipelined and that fasthttp answers at one
// go count as one. A request whose handler takes over the connection ends there.
//
// Requests for profiles and traces, which net/http/pprof answers, are left out, also
// if a goroutine does so that a middleware started.
//
// A wait that a goroutine ended which the request itself had started is accounted
// for by what that goroutine was at meanwhile.
//
// A trace that breaks off is read as far as it goes, with a warning. Memory is
// in proportion to the goroutines alive and the places in the code, not to the
// length of the trace.
func ReadRequests(r io.Reader, o Options) (*Requests, error) {
	t := newTracker(o)
	cut, err := scan(r, t.take)
	if err != nil {
		return nil, err
	}
	res := t.result()
	if cut != nil {
		res.Warnings = append(res.Warnings, cut.Error())
	}
	return res, nil
}

func (s *sites) ownerOf(at cost.Owner) Owner {
	if o := s.role(at); o != (cost.Owner{}) {
		return Owner{Kind: o.Kind.String(), Name: o.Name, Where: o.Where(), Package: s.rules.Package(o)}
	}
	return Owner{}
}
