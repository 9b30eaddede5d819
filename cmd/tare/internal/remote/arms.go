package remote

import (
	"context"
	"errors"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/runs"
)

// ArmFlags name the agents that load the arms of a study.
type ArmFlags struct {
	Flags
	ArmOn string `help:"With --on: address of this machine that arms listen on, so that agents reach them (default: 127.0.0.1)." placeholder:"HOST"`
}

// Check refuses what does not go together.
func (f ArmFlags) Check() error {
	if f.ArmOn != "" && len(f.On) == 0 {
		return cli.Usage("name the agents with --on", errors.New("--arm-on does nothing without --on"))
	}
	return f.Flags.Check()
}

// Join has the agents make the loads of a session; without --on this process does. The
// caller closes s.Agents.
func (f ArmFlags) Join(ctx context.Context, s *runs.Session) (err error) {
	if err := f.Check(); err != nil || len(f.On) == 0 {
		return err
	}
	s.ArmHost = f.ArmOn
	s.AgentFlags = []string{"--on", strings.Join(f.On, ","), "--certs", f.Certs}
	if f.ArmOn != "" {
		s.AgentFlags = append(s.AgentFlags, "--arm-on", f.ArmOn)
	}
	s.Agents, err = f.Connect(ctx, "")
	return err
}
