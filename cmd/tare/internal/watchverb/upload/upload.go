// Package upload sends profiles to a server that keeps them: Grafana Pyroscope, Parca, or a
// receiver of OpenTelemetry.
//
// The first two take pprof's form within JSON, by their own service:
//
//   - Pyroscope: POST /push.v1.PusherService/Push (grafana.com/docs/pyroscope, "Server HTTP
//     API"), which is meant by a URL without a path;
//   - Parca: POST /api/profiles/writeraw (proto/parca/profilestore/v1alpha1 of its
//     repository, which its server mounts below /api), meant by a path that ends so.
//
// A receiver takes OTLP profiles at a path that ends in /v1development/profiles.
package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/telemetry"
	"github.com/tarehq/tare/cost"
)

// Variable is that of the environment which has header fields, such as
// X-Scope-OrgID=team-a.
const Variable = "TARE_PROFILES_HEADERS"

// Label is one of a profile's.
type Label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Profile is what one build of a service did for a while.
type Profile struct {
	Service, Build, Revision string
	Begun                    time.Time
	Duration                 time.Duration

	PProf  []byte // in pprof's form and compressed, with owners as labels
	Stacks []cost.Stack
	Rules  *cost.Rules       // by which they are charged
	Kinds  map[string]string // of owners by their names, where a single stack does not show them
}

// Server is where profiles are sent. Its methods are safe for concurrent use.
type Server struct {
	receiver *telemetry.Receiver
	patience time.Duration // of Close
	ctx      context.Context
	giveUp   context.CancelCauseFunc // has nothing more be sent
	queue    chan []byte
	done     chan struct{}
	lost     telemetry.Losses
}

// Open prepares to send; nothing is sent yet.
func Open(raw string) (*Server, error) {
	receiver, err := telemetry.NewReceiver("profiles", raw, "/push.v1.PusherService/Push", Variable)
	if err != nil {
		return nil, err
	}
	const queued = 256 // some minutes of many services
	s := &Server{receiver: receiver, patience: telemetry.Patience, queue: make(chan []byte, queued), done: make(chan struct{})}
	s.ctx, s.giveUp = context.WithCancelCause(context.Background())
	if s.forOTLP() {
		receiver.SetHeader(developmentField, developmentNumber)
	}
	go s.run()
	return s, nil
}

// forParca reports whether the server is a Parca.
func (s *Server) forParca() bool { return strings.HasSuffix(s.receiver.Path(), "/profiles/writeraw") }

// forOTLP reports whether the server is a receiver of OpenTelemetry.
func (s *Server) forOTLP() bool { return strings.HasSuffix(s.receiver.Path(), otlpPath) }

// Send has a profile sent soon; if too many wait already, it is lost.
func (s *Server) Send(p *Profile) {
	body, err := s.body(p)
	if err != nil {
		s.lost.Add(1, err)
		return
	}
	select {
	case s.queue <- body:
	default:
		s.lost.Add(1, errors.New("profiles come faster than they are taken"))
	}
}

// body is the request for one profile. Bytes are in base64 in both servers' JSON.
func (s *Server) body(p *Profile) ([]byte, error) {
	if s.forOTLP() {
		return p.otlp()
	}
	labels := []Label{{"__name__", "process_cpu"}, {"service_name", p.Service}, {"build", p.Build}}
	if p.Revision != "" {
		labels = append(labels, Label{"revision", p.Revision})
	}
	type raw struct {
		ID      string `json:"ID,omitempty"` // for Pyroscope
		Profile []byte `json:"rawProfile"`
	}
	type series struct {
		Labels  any   `json:"labels"`
		Samples []raw `json:"samples"`
	}
	one := series{Labels: labels, Samples: []raw{{ID: newID(), Profile: p.PProf}}}
	if s.forParca() {
		one.Labels = map[string][]Label{"labels": labels}
		one.Samples[0].ID = ""
	}
	return json.Marshal(map[string][]series{"series": {one}})
}

// newID is a random UUID, of version 4.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// run sends what is queued.
func (s *Server) run() {
	defer close(s.done)
	against := judge
	if s.forOTLP() {
		against = judgeOTLP
	}
	for body := range s.queue {
		if err := s.receiver.Post(s.ctx, body, against); err != nil {
			s.lost.Add(1, cmp.Or(context.Cause(s.ctx), err))
		}
	}
}

// judge is what a server has against a profile; nil is nothing.
func judge(resp *http.Response, text []byte) error {
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %s: %q", resp.Status, text[:min(len(text), 200)])
	}
	return nil
}

// Lost is how many profiles did not arrive since it was last asked, and why the last of
// them.
func (s *Server) Lost() (n int, why error) { return s.lost.Take() }

// Close waits until what is queued was sent, but not for long: the rest is lost.
func (s *Server) Close() error {
	close(s.queue)
	select {
	case <-s.done:
	case <-time.After(s.patience):
	}
	s.giveUp(errors.New("the server did not take them in time"))
	<-s.done
	s.receiver.Close()
	if n, why := s.Lost(); n > 0 {
		return fmt.Errorf("%d profiles were lost: %w", n, why)
	}
	return nil
}
