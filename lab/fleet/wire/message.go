package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// DefaultPort is an agent's.
const DefaultPort = "7411"

// Protocol is the version of what is said over a link.
const Protocol = 1

// The kinds of messages.
const (
	KindHello  = "hello"  // both: versions
	KindRefuse = "refuse" // agent: Text says why; it stays as it was
	KindPing   = "ping"   // coordinator: its clock
	KindPong   = "pong"   // agent: the same, and its own clock twice
	KindJob    = "job"    // coordinator: a share of a load
	KindReady  = "ready"  // agent: the job is within its bounds
	KindStart  = "start"  // coordinator: when, by the agent's clock
	KindPart   = "part"   // agent: what came in the latest slices
	KindResult = "result" // agent: the whole; Text is load.Run's error
	KindFail   = "fail"   // agent: Text says why there is no result
	KindStop   = "stop"   // coordinator: end the load early
)

var (
	// ErrVersion is wrapped when coordinator and agent are of different versions.
	ErrVersion = errors.New("versions differ")
	// ErrBusy is wrapped when another coordinator has an agent.
	ErrBusy = errors.New("agent busy")
	// ErrNotAllowed is wrapped when an agent's configuration forbids a load.
	ErrNotAllowed = errors.New("agent's configuration forbids it")
)

// Reasons are the errors that a refusal keeps on its way, by name.
func Reasons() map[string]error {
	return map[string]error{"version": ErrVersion, "busy": ErrBusy, "allowed": ErrNotAllowed}
}

// Refusal says no, and why.
func Refusal(err error) *Message {
	m := &Message{Kind: KindRefuse, Text: err.Error()}
	for name, reason := range Reasons() {
		if errors.Is(err, reason) {
			m.Reason = name
		}
	}
	return m
}

// Refused is the error that a refusal stands for.
func Refused(m *Message) error {
	if reason, ok := Reasons()[m.Reason]; ok {
		return &refusalError{text: m.Text, reason: reason}
	}
	return errors.New(m.Text)
}

// refusalError has the peer's words and this process's error.
type refusalError struct {
	text   string
	reason error
}

func (e *refusalError) Error() string { return e.text }
func (e *refusalError) Unwrap() error { return e.reason }

// Message is what a frame says. Only what its kind needs is set. Clocks are in nanoseconds
// since a moment of the process's own.
type Message struct {
	Kind     string   `json:"kind"`
	Text     string   `json:"text,omitzero"`
	Reason   string   `json:"reason,omitzero"` // refuse: a key of reasons
	Protocol int      `json:"protocol,omitzero"`
	Version  string   `json:"version,omitzero"`
	Asked    int64    `json:"asked,omitzero"`    // ping, pong: the coordinator's clock
	Received int64    `json:"received,omitzero"` // pong: the agent's when the ping had come
	Sent     int64    `json:"sent,omitzero"`     // pong: the agent's when it answered
	At       int64    `json:"at,omitzero"`       // start: the agent's clock
	Job      *Job     `json:"job,omitzero"`
	Result   *Outcome `json:"result,omitzero"`
	Lengths  []int    `json:"lengths,omitempty"` // of the histograms behind the message, in bytes

	Part  *Part    `json:"-"` // stands before the histograms
	Hists [][]byte `json:"-"` // as hist.Hist.Append writes them
}

// Job is an agent's share of a load: options as they travel. The fields beside the options
// hide those of the same name, which stay at home.
type Job struct {
	load.Options
	Feeder   *struct{} `json:",omitempty"`
	Unix     *struct{} `json:",omitempty"`
	TLS      *struct{} `json:",omitempty"`
	CPUs     *struct{} `json:",omitempty"`
	Progress *struct{} `json:",omitempty"`
	Mark     *struct{} `json:",omitempty"`
	Sealed   *struct{} `json:",omitempty"`

	CA       []byte `json:",omitempty"` // PEM certificates that https targets are verified by
	Insecure bool   `json:",omitempty"` // they are not verified
}

// Unpack is the load that the agent runs.
func (j *Job) Unpack() (load.Options, error) {
	o := j.Options
	if len(j.CA) > 0 || j.Insecure {
		o.TLS = &tls.Config{InsecureSkipVerify: j.Insecure}
	}
	if len(j.CA) > 0 {
		o.TLS.RootCAs = x509.NewCertPool()
		if !o.TLS.RootCAs.AppendCertsFromPEM(j.CA) {
			return o, errors.New("the job's CA holds no certificate")
		}
	}
	return o, nil
}

// Tally is load.Counts in the order of its fields. Counts' own JSON is for readers, and is
// not read back.
type Tally [14]uint64

// TallyOf is c as it travels.
func TallyOf(c load.Counts) (t Tally) {
	for i, v := range fieldsOf(&c) {
		t[i] = *v
	}
	return t
}

// Counts is what the tally was made of.
func (t Tally) Counts() (c load.Counts) {
	for i, v := range fieldsOf(&c) {
		*v = t[i]
	}
	return c
}

func fieldsOf(c *load.Counts) [len(Tally{})]*uint64 {
	return [...]*uint64{&c.Scheduled, &c.Status[0], &c.Status[1], &c.Status[2], &c.Status[3], &c.Status[4], &c.Status[5],
		&c.Refused, &c.Reset, &c.Timeout, &c.Short, &c.Malformed, &c.Dropped, &c.Unverified}
}

// Outcome is load.Result as it travels: its own JSON is for readers, who get tables of
// quantiles. The series has gone before, in parts; the histograms stand behind the message.
type Outcome struct {
	Began                             int64         `json:"began"` // the agent's clock
	Elapsed, Window                   time.Duration // nanoseconds
	Ended                             string
	Engine                            load.Engine
	Threads                           int
	Counts, WarmUp                    Tally
	BytesIn, BytesOut                 uint64
	Opened, Reused, Full, Resumed     uint64
	MeanFlight                        float64
	PeakFlight                        int
	Within, Carried, InTime, MaxRSS   uint64
	CPU, Spun                         time.Duration
	Waited, Bound, Stopped, StatusAsk bool
	Warnings                          []string // without load.ErrOnlyErrors, which is said of the whole
}

// HistsOf are the histograms of a result, in the order of their travel.
func HistsOf(r *load.Result) [8]**hist.Hist {
	return [...]**hist.Hist{&r.Response, &r.Service, &r.FirstByte, &r.Connect, &r.Handshake, &r.Lag, &r.Late, &r.Unread}
}

// PackResult takes a result apart; base is the moment from which the agent's clock counts.
func PackResult(r *load.Result, base time.Time) *Message {
	o := &Outcome{
		Began: int64(r.Started.Sub(base)), Elapsed: r.Elapsed, Window: r.Window, Ended: r.Ended, Engine: r.Engine, Threads: r.Threads,
		Counts: TallyOf(r.Counts), WarmUp: TallyOf(r.WarmUp), BytesIn: r.BytesIn, BytesOut: r.BytesOut,
		Opened: r.Opened, Reused: r.Reused, Full: r.Full, Resumed: r.Resumed, MeanFlight: r.MeanFlight, PeakFlight: r.PeakFlight,
		Within: r.Within, Carried: r.Carried, InTime: r.InTime, MaxRSS: r.MaxRSS, CPU: r.CPU, Spun: r.Spun,
		Waited: r.Waited, Bound: r.Bound, Stopped: r.Stopped, StatusAsk: r.StatusAsked,
	}
	for _, w := range r.Warnings {
		if !errors.Is(w, load.ErrOnlyErrors) {
			o.Warnings = append(o.Warnings, w.Error())
		}
	}
	m := &Message{Kind: KindResult, Result: o}
	for _, h := range HistsOf(r) {
		m.Hists = append(m.Hists, (*h).Append(nil))
	}
	return m
}

// UnpackResult puts a result together again. base is the moment of this process at which
// the agent's clock was 0.
func UnpackResult(m *Message, base time.Time) (*load.Result, error) {
	o := m.Result
	if o == nil {
		return nil, errors.New("a result is missing from its message")
	}
	r := &load.Result{
		Started: base.Add(time.Duration(o.Began)), Elapsed: o.Elapsed, Window: o.Window, Ended: o.Ended, Engine: o.Engine, Threads: o.Threads,
		Counts: o.Counts.Counts(), WarmUp: o.WarmUp.Counts(), BytesIn: o.BytesIn, BytesOut: o.BytesOut,
		Connections: load.Connections{Opened: o.Opened, Reused: o.Reused, Full: o.Full, Resumed: o.Resumed, Waited: o.Waited},
		MeanFlight:  o.MeanFlight, PeakFlight: o.PeakFlight, Within: o.Within, Carried: o.Carried, InTime: o.InTime,
		Generator:   load.Generator{CPU: o.CPU, Spun: o.Spun, MaxRSS: o.MaxRSS, Bound: o.Bound, Stopped: o.Stopped},
		StatusAsked: o.StatusAsk,
	}
	for _, w := range o.Warnings {
		r.Warnings = append(r.Warnings, errors.New(w))
	}
	all := HistsOf(r)
	if len(m.Hists) != len(all) {
		return nil, fmt.Errorf("a result has %d histograms, want %d", len(m.Hists), len(all))
	}
	for i, h := range all {
		*h = hist.New()
		if err := (*h).MergeAppended(m.Hists[i]); err != nil {
			return nil, fmt.Errorf("histogram %d of a result %w", i, err)
		}
	}
	return r, nil
}
