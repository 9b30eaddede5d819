// Package agentverb runs an agent, which makes loads for coordinators: the verb agent.
package agentverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/lab/fleet/agent"
	"github.com/tarehq/tare/lab/fleet/certs"
	"github.com/tarehq/tare/lab/fleet/wire"
)

// Command makes certificates, or serves.
type Command struct {
	Action string   `arg:"" enum:"init,serve" help:"init makes certificates; serve runs an agent."`
	Certs  string   `help:"Folder of certificates: where init writes them, or of the agent that serves." placeholder:"DIR"`
	Host   []string `help:"With init: hosts to make agents' certificates for, as --on names them." placeholder:"HOST"`
	Config string   `help:"With serve: YAML file that says what the agent may load." placeholder:"FILE"`
}

// Help says how to begin.
func (c *Command) Help() string {
	return `Examples:

  tare agent init --certs certs --host load1,load2
  tare agent serve --config agent.yaml --certs certs/agents/load1
  tare load --on load1,load2 --certs certs -r 200k http://10.0.0.7:8080/

init makes an authority, a certificate for the coordinator, and a folder for each host in
certs/agents. Copy that folder to its host. Keep the rest: whoever has it can use the
agents. Run init again to add hosts.

The file of an agent names the places that it may load:

  listen: 0.0.0.0:7411
  allow:
    - 10.0.0.7:8080

serve runs until it is interrupted. It logs to standard error. The topic agents (tare help
agents) describes the file, the network and the protocol.`
}

// Run does what the action says.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	if err := errors.Join(t.RefuseFlags(c.Action == "init", "with init", "config"), t.RefuseFlags(c.Action == "serve", "with serve", "host")); err != nil {
		return err
	}
	if c.Action == "init" {
		return c.init(t)
	}
	return c.serve(ctx, t)
}

func (c *Command) init(t *cli.Terminal) error {
	if c.Certs == "" || len(c.Host) == 0 {
		return cli.Usage("tare agent init --certs certs --host load1,load2", errors.New("init needs --certs, a folder, and --host, the agents' hosts"))
	}
	made, err := certs.Make(c.Certs, c.Host)
	if err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: err}
	}
	for _, dir := range made {
		if _, err := fmt.Fprintln(t.Out, dir); err != nil {
			return err
		}
	}
	t.Note("copy each folder to its host; keep %s for --certs", c.Certs)
	return nil
}

func (c *Command) serve(ctx context.Context, t *cli.Terminal) error {
	if c.Config == "" {
		return cli.Usage("the file lists what the agent may load: see `tare help agents`", errors.New("serve needs --config, a file"))
	}
	config, err := agent.ReadConfig(c.Config)
	if err != nil {
		return cli.Usage("see `tare help agents`", err)
	}
	dir := cmp.Or(c.Certs, config.Certs)
	if dir == "" {
		return cli.Usage("`tare agent init` makes it", errors.New("serve needs --certs, the agent's folder"))
	}
	security, err := certs.Agent(dir)
	if err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: err, Hint: "--certs takes the folder of one agent, such as certs/agents/load1"}
	}
	log := slog.New(slog.NewTextHandler(t.Err, nil))
	served, err := agent.New(*config, security, cli.Version(), log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmp.Or(config.Listen, net.JoinHostPort("127.0.0.1", wire.DefaultPort)))
	if err != nil {
		return &cli.Failure{Status: cli.ExitFailed, Err: fmt.Errorf("listening: %w", err), Hint: cli.ListenHint(err, "`listen` of "+c.Config)}
	}
	log.Info("agent ready", "address", listener.Addr().String(), "version", cli.Version())
	return served.Serve(ctx, listener)
}
