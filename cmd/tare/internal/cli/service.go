package cli

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tarehq/tare/cost/bpf"
	"github.com/tarehq/tare/cost/capture"
	"github.com/tarehq/tare/cost/pprof"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
)

// Process holds the flags that name a running service by its processes.
type Process struct {
	PID       int    `name:"pid" type:"pid" help:"Process ID of the service. It needs no changes; measuring from outside needs Linux and root." placeholder:"N"`
	Cgroup    string `help:"Control group of the service: its directory." placeholder:"PATH"`
	Container string `help:"Container of the service: the beginning of its ID." placeholder:"ID"`
}

// Named reports whether a flag names a process.
func (p Process) Named() bool { return p.PID != 0 || p.Cgroup != "" || p.Container != "" }

// Service returns the service that the flags or an argument name: one thing, of which
// remedy gives examples.
func (p Process) Service(arg, remedy string) (capture.Service, error) {
	n := 0
	for _, named := range []bool{arg != "", p.PID != 0, p.Cgroup != "", p.Container != ""} {
		if named {
			n++
		}
	}
	switch {
	case n == 0:
		return capture.Service{}, Usage(remedy, errors.New("nothing to look at: neither a URL nor a process nor a profile"))
	case n > 1:
		return capture.Service{}, Usage(remedy, errors.New("a URL, saved profiles, --pid, --cgroup and --container exclude one another"))
	case arg != "":
		return ParseService(arg)
	}
	return capture.Service{PID: p.PID, Cgroup: p.Cgroup, Container: p.Container}, nil
}

// ParseService reads an argument that names a service.
func ParseService(arg string) (capture.Service, error) {
	s, err := capture.ParseService(arg)
	if err == nil && s.URL != "" {
		_, err = pprof.Find(s.URL)
	}
	if err != nil {
		return s, Usage("such as localhost:6060, or the number of a process", err)
	}
	return s, nil
}

// Headers holds the flag of header fields that requests have.
type Headers struct {
	Header []string `short:"H" sep:"none" help:"Header field to send, as 'Name: value'; repeatable." placeholder:"FIELD"`
}

// Fields parses them.
func (h Headers) Fields() ([]load.Field, error) { return HeaderFields("--header", h.Header) }

// Sending holds the flags that say how a load is sent while a service is looked at.
type Sending struct {
	Connections int     `short:"c" default:"64" help:"With --load: number of connections; with --rate the maximum."`
	Rate        float64 `short:"r" help:"With --load: requests a second, independent of responses (0: as fast as possible)." placeholder:"N"`
	Method      string  `short:"m" help:"With --load: method (default: GET, or POST with a body)."`
	Body        string  `short:"b" help:"With --load: body." placeholder:"TEXT"`
	Headers
}

// Check refuses values that cannot be meant; loaded is whether a URL is to be loaded.
func (s Sending) Check(t *Terminal, loaded bool) error {
	for _, name := range []string{"connections", "rate", "method", "body", "header"} {
		if !loaded && t.Given[name] {
			return Usage("leave it out, or name the URL to load: --load URL", fmt.Errorf("--%s does nothing without --load", name))
		}
	}
	if s.Rate < 0 || s.Connections < 1 {
		return Usage("", errors.New("--rate and --connections are no less than 0 and 1"))
	}
	_, err := s.Fields()
	return err
}

// Options are those of the load of a URL; nil if that is "".
func (s Sending) Options(url string) *load.Options {
	if url == "" {
		return nil
	}
	header, _ := s.Fields() // Check has seen whether that works
	method := s.Method
	if method == "" && s.Body != "" {
		method = http.MethodPost
	}
	o := &load.Options{Targets: []load.Target{{Method: method, URL: url, Header: header, Body: []byte(s.Body)}}, Connections: s.Connections}
	if s.Rate > 0 {
		o.Schedule = pace.Constant(s.Rate)
	}
	return o
}

// Load holds the flags of a load that is sent while a service is looked at.
type Load struct {
	URL string `name:"load" help:"URL to load meanwhile, to show costs per request." placeholder:"URL"`
	Sending
}

// Check refuses values that cannot be meant.
func (l Load) Check(t *Terminal) error { return l.Sending.Check(t, l.URL != "") }

// Options are those of the load; nil if there is none.
func (l Load) Options() *load.Options { return l.Sending.Options(l.URL) }

// For holds the flag of how long a service is looked at.
type For struct {
	For time.Duration `default:"10s" help:"How long to measure, in whole seconds."`
}

// Check refuses what services do not take.
func (f For) Check(most time.Duration) error {
	if f.For < time.Second || f.For > most || f.For%time.Second != 0 {
		text := strings.TrimSuffix(strings.TrimSuffix(most.String(), "0s"), "0m")
		return Usage("", fmt.Errorf("--for %s: whole seconds, at least 1s, at most %s", f.For, text))
	}
	return nil
}

// Hz holds the flag of how often a process is sampled from outside.
type Hz struct {
	Hz int `help:"From outside: samples a second per CPU (0: 499)." placeholder:"N"`
}

// Check refuses a rate that cannot be had; outside is whether processes are looked at.
func (h Hz) Check(outside bool) error {
	switch {
	case h.Hz != 0 && !outside:
		return Usage("tare cost --pid N --hz 999", errors.New("--hz is for --pid, --cgroup and --container; the service's own profiler keeps its rate"))
	case h.Hz < 0 || h.Hz > bpf.MaxHz:
		return Usage("", fmt.Errorf("--hz %d: at least 1, at most %d", h.Hz, bpf.MaxHz))
	}
	return nil
}
