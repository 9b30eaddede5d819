package carry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/tarehq/tare/lab/fleet/wire"
)

// AgentOptions say what an agent may load. Secret and Certs are as in Options.
type AgentOptions struct {
	Secret, Certs string
	Config        string   // file to write
	Allow         []string // places, as host:port
	Arms          string   // host whose arms may be loaded, too, at its addresses; "" is none
}

// armPorts are those that tare has arms listen on.
const armPorts = "20000-31999"

// Agent runs tare's agent until ctx ends. It ends with an error, also then: its pod has not
// done what it was made for, and another may take its place.
func Agent(ctx context.Context, o AgentOptions, tare string, log io.Writer) error {
	if err := CopyCerts(o.Secret, o.Certs); err != nil {
		return err
	}
	allow := slices.Clone(o.Allow)
	if o.Arms != "" {
		addresses, err := lookUp(ctx, o.Arms)
		if err != nil {
			return err
		}
		for _, a := range addresses {
			allow = append(allow, net.JoinHostPort(a, armPorts))
		}
	}
	if err := os.WriteFile(o.Config, configuration(allow), 0o600); err != nil {
		return fmt.Errorf("writing the agent's configuration: %w", err)
	}
	cmd := exec.CommandContext(ctx, tare, "agent", "serve", "--config", o.Config, "--certs", o.Certs)
	cmd.Stdout, cmd.Stderr = log, log
	interruptOnCancel(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		return errors.New("the agent had to end")
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("running the agent: %w", err)
}

// lookUp waits for a host to have addresses.
func lookUp(ctx context.Context, host string) (addresses []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, agentsWithin, fmt.Errorf("not found within %v", agentsWithin))
	defer cancel()
	err = retry(ctx, func() (err error) {
		addresses, err = net.DefaultResolver.LookupHost(ctx, host)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking up the arms' host: %w", err)
	}
	return addresses, nil
}

// configuration is an agent's file. Whoever has its coordinator's key made it, so its bounds
// are the widest there are.
func configuration(allow []string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: \":%s\"\nrate: 100000000\nconnections: 1000000\nbody: %d\nmessage: %[2]d\nduration: 168h\nallow:\n", wire.DefaultPort, wire.MostFrame)
	for _, a := range allow {
		fmt.Fprintf(&b, "  - %q\n", a)
	}
	return []byte(b.String())
}
