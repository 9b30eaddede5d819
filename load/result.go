package load

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// Result is what a load run measured. All times are of the measured part. Its JSON is what
// [Result.MarshalJSON] describes.
type Result struct {
	Started time.Time     `json:"started"`    // of the measured part
	Elapsed time.Duration `json:"elapsed_ns"` // of it: to its end, where Options.Requests decides the start of the last, or to the last answer if that came later
	Window  time.Duration `json:"-"`          // of it, without what came after: in which requests could begin; Elapsed where Options.Requests decided the end
	Ended   string        `json:"ended"`      // "" or why it ended early, such as "interrupted"
	Engine  Engine        `json:"engine"`     // that ran
	Threads int           `json:"threads"`

	Counts Counts `json:"counts"`  // of the measured part
	WarmUp Counts `json:"warm_up"` // of the warm-up

	Response  *hist.Hist `json:"response,omitzero"`   // intended start → last byte, ns; closed loop: equal to Service
	Service   *hist.Hist `json:"service,omitzero"`    // start → last byte, ns
	FirstByte *hist.Hist `json:"first_byte,omitzero"` // start → first byte of the answer, ns
	Connect   *hist.Hist `json:"connect,omitzero"`    // TCP or Unix connect, ns; warm-up included
	Handshake *hist.Hist `json:"handshake,omitzero"`  // TLS handshake, ns; warm-up included

	BytesIn  uint64 `json:"bytes_in"` // carried by TCP, headers and TLS included
	BytesOut uint64 `json:"bytes_out"`

	Connections `json:"connections"`
	MeanFlight  float64 `json:"mean_in_flight"` // time-averaged requests due and not finished, integrated independently of the response times
	PeakFlight  int     `json:"peak_in_flight"` // the most at a time that were in flight or, taken up, waited for a connection
	Within      uint64  `json:"-"`              // of the measured part, answered within Window
	Carried     uint64  `json:"-"`              // of the warm-up, answered within Window
	InTime      uint64  `json:"-"`              // answered within Window, or within one typical response time after: see FindMax

	Generator   `json:"generator"`
	StatusAsked bool     `json:"-"`        // a target's Verify names the status that is right; else 4xx and 5xx are errors
	Series      []Slice  `json:"series"`   // per Options.Slice, in order; the last holds what ended after the measured part
	Warnings    Warnings `json:"warnings"` // caveats of this result, to be shown with it
}

// Connections are those of a run, its warm-up included where nothing else is said.
type Connections struct {
	Opened  uint64 `json:"opened"`
	Reused  uint64 `json:"reused"`             // requests of the measured part sent on a connection that had carried one before
	Full    uint64 `json:"full_handshakes"`    // of TLS
	Resumed uint64 `json:"resumed_handshakes"` // of TLS
	Waited  bool   `json:"waited"`             // requests waited for a free connection: see Warnings for how long
}

// Generator is what a run cost and delayed by itself, in the measured part.
type Generator struct {
	CPU     time.Duration `json:"cpu_ns"`          // user and system
	Spun    time.Duration `json:"spun_ns"`         // what of CPU went into polling before intended starts
	MaxRSS  uint64        `json:"max_rss_bytes"`   // of its process
	Bound   bool          `json:"bound"`           // it was (nearly) the bottleneck: see Warnings for why
	Stopped bool          `json:"-"`               // its process was stopped meanwhile, as by Ctrl-Z
	Lag     *hist.Hist    `json:"lag,omitzero"`    // intended start → start, ns; open loop only
	Late    *hist.Hist    `json:"late,omitzero"`   // the part of Lag that is the generator's own, not the wait for a free connection, ns
	Unread  *hist.Hist    `json:"unread,omitzero"` // arrival of an answer → read by the generator, ns; in no other time, and empty where the kernel does not note arrivals: see the package
}

// Busy is the share of its threads' time that the generator worked, polling before
// intended starts left out: from 0 to about 1, 0 if no time passed.
func (r *Result) Busy() float64 {
	if r.Elapsed <= 0 || r.Threads <= 0 {
		return 0
	}
	return (r.CPU - r.Spun).Seconds() / (r.Elapsed.Seconds() * float64(r.Threads))
}

// Starved reports whether the generator was late for want of a CPU and not of threads: it
// was neither busy nor stopped.
func (r *Result) Starved() bool { return r.IsLate() && r.Busy() < idleShare && !r.Stopped }

// IsLate reports whether the generator began 1 % of the requests over a millisecond after
// they were due and could begin.
func (r *Result) IsLate() bool { return r.Late != nil && r.Late.Quantile(0.99) > lateLag }

// Errors is the number of requests that went wrong: without a whole answer, dropped, or
// answered in a wrong way. Wrong are answers that fail Target.Verify, and those with status
// 4xx or 5xx where no target's Verify names a status.
func (r *Result) Errors() uint64 {
	c := r.Counts
	wrong := c.Unverified
	if !r.StatusAsked {
		wrong = max(wrong, c.Status[4]+c.Status[5])
	}
	return c.Failed() + c.Dropped + wrong
}

// Throughput is the number of answers a second within Window. What comes later does
// not count, so that a stall at the end lengthens no denominator of its own; what
// began in the warm-up does.
func (r *Result) Throughput() float64 {
	if r.Window <= 0 {
		return 0
	}
	return float64(r.Within+r.Carried) / r.Window.Seconds()
}

// Counts say how requests ended. Every scheduled request is in exactly one of
// the fields up to Dropped, so their sum is Scheduled. JSON has the sum of Status beside it.
type Counts struct {
	Scheduled uint64  `json:"scheduled"`
	Status    Classes `json:"status"`    // answered, by class: Status[2] is 2xx; [0] is never used
	Refused   uint64  `json:"refused"`   // the connection was refused or could not be made
	Reset     uint64  `json:"reset"`     // the connection was reset or broke while sending or before any byte of an answer
	Timeout   uint64  `json:"timeout"`   // no whole answer within Options.Timeout
	Short     uint64  `json:"short"`     // the connection ended within the answer
	Malformed uint64  `json:"malformed"` // the answer is not HTTP, or beyond a limit
	Dropped   uint64  `json:"dropped"`   // scheduled, never sent

	Unverified uint64 `json:"unverified"` // answered, but not as Target.Verify asks; also counted by class
}

// Classes are numbers of answers by status class.
type Classes [6]uint64

// String is the numbers for people, such as "17,317 2xx, 20 5xx"; "no answer" is none.
func (c Classes) String() string {
	var parts []string
	for class, n := range c {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %dxx", unit.Format(float64(n), unit.Count), class))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no answer")
}

// Answered is the number of well-formed whole answers.
func (c Counts) Answered() uint64 {
	var n uint64
	for _, v := range c.Status {
		n += v
	}
	return n
}

// Failed is the number of requests sent that got no whole answer.
func (c Counts) Failed() uint64 {
	return c.Refused + c.Reset + c.Timeout + c.Short + c.Malformed
}

// Slice is one period of the series.
type Slice struct {
	At       time.Duration `json:"at_ns"` // of its start, from the start of the measured part
	Answered uint64        `json:"answered"`
	Failed   uint64        `json:"failed"`
	Dropped  uint64        `json:"dropped"`
	BytesIn  uint64        `json:"bytes_in"`
	P50      time.Duration `json:"p50_ns"` // response time of what ended in the slice, as the next
	P99      time.Duration `json:"p99_ns"`
	Max      time.Duration `json:"max_ns"`
}

// Snapshot is the state of a running load.
type Snapshot struct {
	Elapsed  time.Duration // of the measured part; negative while warming up
	Total    time.Duration // planned; 0 when bounded by requests
	Counts   Counts
	Rate     float64    // answers a second over about the last second
	Flight   int        // requests in flight or waiting for a connection
	Response *hist.Hist // so far; the receiver may keep it until the next call
	Service  *hist.Hist
}
