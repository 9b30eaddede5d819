// Package remote has agents on other hosts make a load.
package remote

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/pods"
	"github.com/tarehq/tare/doc"
	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/fleet/certs"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
	"github.com/tarehq/tare/stats/unit"
)

// Report is what a load by agents came to.
type Report = fleet.Report

// Flags name the agents.
type Flags struct {
	On    []string   `name:"on" help:"Agents that make the load, separated by commas (without a port: 7411). k8s[:NAMESPACE] runs the whole command in pods of a Kubernetes cluster." placeholder:"HOST:PORT"`
	Certs string     `help:"Folder of certificates for --on, from tare agent init." placeholder:"DIR"`
	Pods  pods.Flags `embed:""`
}

// InPods returns the namespace in which the command is to run in pods; "" is that of the
// user's context. yes is false if it runs here.
func (f Flags) InPods() (namespace string, yes bool) { return pods.Namespace(f.On) }

// RunInPods has the command run there.
func (f Flags) RunInPods(ctx context.Context, t *cli.Terminal, c pods.Command) error {
	if err := f.Check(); err != nil {
		return err
	}
	namespace, _ := f.InPods()
	return f.Pods.Run(ctx, t, namespace, c)
}

// Check refuses what does not go together.
func (f Flags) Check() error {
	_, inPods := f.InPods()
	switch {
	case inPods && f.Certs != "":
		return cli.Usage("leave it out", errors.New("--certs does nothing with --on k8s: pods get certificates of their own"))
	case inPods:
		return nil
	case f.Pods.Given():
		return cli.Usage("run the command in pods with --on k8s", errors.New("--agents, --image, --pod-cpu, --pod-memory and --deadline do nothing without --on k8s"))
	case len(f.On) > 0 && f.Certs == "":
		return cli.Usage("`tare agent init` makes them", errors.New("--on needs --certs, the folder of certificates"))
	case len(f.On) == 0 && f.Certs != "":
		return cli.Usage("name the agents with --on", errors.New("--certs does nothing without --on"))
	}
	return nil
}

// Connect connects to the agents; without --on it returns nil, which makes loads here. ca is
// the file of certificates by which https targets are verified, if there is one.
func (f Flags) Connect(ctx context.Context, ca string) (*fleet.Fleet, error) {
	if err := f.Check(); err != nil || len(f.On) == 0 {
		return nil, err
	}
	names, err := fleet.Names(f.On)
	if err != nil {
		return nil, cli.Usage("--on takes hosts, such as 10.0.0.5 or load1.example:7411", fmt.Errorf("--on: %w", err))
	}
	o := fleet.Options{Agents: names, Version: cli.Version()}
	if o.TLS, err = certs.Coordinator(f.Certs); err != nil {
		return nil, cli.Usage("`tare agent init` makes the folder", fmt.Errorf("--certs: %w", err))
	}
	if ca != "" {
		if o.CA, err = readCA(ca); err != nil {
			return nil, err
		}
	}
	agents, err := fleet.Connect(ctx, o)
	if err != nil {
		return nil, Explain(err)
	}
	return agents, nil
}

// mostCA bounds a file of certificates, in bytes: it is sent to each agent.
const mostCA = 1 << 20

func readCA(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostCA+1))
	if err == nil && len(text) > mostCA {
		err = fmt.Errorf("%s has more than the %d bytes that agents are sent", path, mostCA)
	}
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	return text, nil
}

// Load makes a load with the agents, or without --on here. The report is nil then, and when
// there is no result.
func (f Flags) Load(ctx context.Context, o load.Options, ca string) (*load.Result, *fleet.Report, error) {
	agents, err := f.Connect(ctx, ca)
	if err != nil {
		return nil, nil, err
	}
	if agents == nil {
		res, err := load.Run(ctx, o)
		return res, nil, err
	}
	defer agents.Close()
	rep, err := agents.Run(ctx, o)
	if rep == nil {
		return nil, nil, Explain(err)
	}
	return rep.Result, rep, err
}

// Explain adds the remedy to an error of agents.
func Explain(err error) error {
	if errors.Is(err, context.Canceled) || errors.As(err, new(*cli.Failure)) {
		return err
	}
	f := &cli.Failure{Status: cli.ExitFailed, Err: err}
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		network *net.OpError
	)
	switch {
	case errors.Is(err, fleet.ErrVersion):
		f.Hint = "install the same tare on all hosts"
	case errors.Is(err, fleet.ErrBusy):
		f.Hint = "wait for the other coordinator to end"
	case errors.Is(err, fleet.ErrNotAllowed):
		f.Hint = "an agent's configuration file bounds what it does: see `tare help agents`"
	case errors.Is(err, fleet.ErrUnshared):
		f.Status = cli.ExitUsage
		f.Hint = "use fewer agents, raise the number, or make the load without --on"
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid):
		f.Hint = "make certificates for each host as --on names it: `tare agent init --host HOST --certs DIR`"
	case errors.Is(err, fleet.ErrLost):
		f.Hint = "no result was kept, and the other agents stopped; see the log of the lost agent"
	case errors.As(err, &network):
		f.Hint = "start `tare agent serve` on the host, and check its firewall and its certificates"
	}
	return f
}

// quantiles are shown of each agent.
func quantiles() []float64 { return []float64{.5, .9, .99, .999} }

// Blocks show what each agent measured, beside the whole. Nothing without a report.
func Blocks(rep *fleet.Report, open bool) []doc.Block {
	if rep == nil {
		return nil
	}
	t := doc.Table{Caption: "agents", Columns: []doc.Column{{Head: "agent", Key: true}, {Head: "answers", Right: true}}}
	for _, q := range quantiles() {
		t.Columns = append(t.Columns, doc.Column{Head: unit.Quantile(q), Right: true})
	}
	t.Columns = append(t.Columns, doc.Column{Head: "start", Right: true, Optional: true}, doc.Column{Head: "busy", Right: true, Optional: true})
	row := func(name string, res *load.Result, start string) {
		times := res.Service
		if open {
			times = res.Response
		}
		cells := doc.Cells(name, unit.Format(float64(res.Counts.Answered()), unit.Count))
		for _, q := range quantiles() {
			text := "–"
			if times.Count() >= hist.Needed(q) {
				text = unit.Format(float64(times.Quantile(q)), unit.Nanoseconds)
			}
			cells = append(cells, doc.Cell{Text: text})
		}
		cells = append(cells, doc.Cell{Text: start}, doc.Cell{Text: unit.Format(res.Busy(), unit.Share)})
		t.Rows = append(t.Rows, doc.Row{Cells: cells})
	}
	for _, a := range rep.Agents {
		row(a.Name, a.Result, unit.Format(float64(a.Start), unit.Nanoseconds))
	}
	row("all", rep.Result, "")
	note := fmt.Sprintf("start: after the planned moment, known to ± %s; the agents began within %s",
		unit.Format(float64(worst(rep)/2), unit.Nanoseconds), unit.Format(float64(rep.Skew), unit.Nanoseconds))
	return []doc.Block{t, doc.Note(note)}
}

// worst is the longest exchange by which clocks were compared.
func worst(rep *fleet.Report) time.Duration {
	var rtt time.Duration
	for _, a := range rep.Agents {
		rtt = max(rtt, a.RTT)
	}
	return rtt
}
