package lab_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/fleet/agent"
	"github.com/tarehq/tare/lab/fleet/certs"
)

// generator is an agent that can be stopped, and started again at its address.
type generator struct {
	t     *testing.T
	certs string
	addr  string
	stop  func()
}

func (a *generator) start() {
	a.t.Helper()
	security, err := certs.Agent(a.certs)
	if err != nil {
		a.t.Fatal(err)
	}
	served, err := agent.New(agent.Config{Allow: []string{"127.0.0.1:*"}}, security, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		a.t.Fatal(err)
	}
	l, err := net.Listen("tcp", a.addr)
	if err != nil {
		a.t.Fatal(err)
	}
	a.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- served.Serve(ctx, l) }()
	a.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			a.t.Error(err)
		}
		a.stop = func() {}
	}
}

// withAgents has two agents make the loads of a run.
func withAgents(t *testing.T, o *lab.Options) [2]*generator {
	t.Helper()
	dir := t.TempDir()
	made, err := certs.Make(dir, []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	var all [2]*generator
	var names []string
	for i := range all {
		all[i] = &generator{t: t, certs: made[0], addr: "127.0.0.1:0"}
		all[i].start()
		t.Cleanup(func() { all[i].stop() })
		names = append(names, all[i].addr)
	}
	security, err := certs.Coordinator(dir)
	if err != nil {
		t.Fatal(err)
	}
	if o.Agents, err = fleet.Connect(t.Context(), fleet.Options{Agents: names, TLS: security, Version: "test"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Agents.Close)
	return all
}

// Agents make the loads of a study, and each load's report can be kept.
func TestAgents(t *testing.T) {
	s := small(t, "ok", "ok")
	o := options(t, s)
	o.Blocks, o.ArmHost = 1, "127.0.0.1"
	withAgents(t, &o)
	reports := 0
	o.Agents.Keep(func(rep *fleet.Report) error {
		if reports++; len(rep.Agents) != 2 || rep.Agents[0].Result.Counts.Answered()+rep.Agents[1].Result.Counts.Answered() != rep.Result.Counts.Answered() {
			t.Errorf("the report of load %d does not add up", reports)
		}
		return nil
	})
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if reports < len(run.Trials) {
		t.Errorf("%d reports of %d trials", reports, len(run.Trials))
	}
	for _, tr := range run.Trials {
		if tr.Requests == 0 || tr.Metrics["throughput"] <= 0 || tr.Metrics["service_p50"] <= 0 {
			t.Errorf("trial %d of %s measured nothing: %v, %q", tr.Seq, tr.Arm, tr.Metrics, tr.Invalid)
		}
	}
}

// A trial in which an agent is lost is invalid, and its cell is run again.
func TestAgentLost(t *testing.T) {
	s := small(t, "ok", "ok")
	s.Workloads = s.Workloads[:1]
	o := options(t, s)
	o.Blocks = 1
	agents := withAgents(t, &o)
	begun := 0
	o.Progress = func(e lab.Event) {
		switch e.Stage {
		case lab.Running:
			if begun++; begun == 2 {
				agents[1].stop()
			}
		case lab.Ended:
			if begun == 2 && e.Result != nil {
				agents[1].start()
			}
		}
	}
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	lost, again := -1, false
	for i, tr := range run.Trials {
		switch why := strings.Join(tr.Invalid, "; "); {
		case strings.Contains(why, "agent lost") && strings.Contains(why, agents[1].addr):
			lost = i
		case lost >= 0 && tr.Arm == run.Trials[lost].Arm && tr.Requests > 0:
			again = true
		}
	}
	if lost < 0 || !again {
		t.Errorf("trial %d was invalid for the lost agent; run again: %v; want both", lost, again)
	}
}
