// Package operatorverb is the verb operator: it runs studies and load tests that are declared
// as resources of Kubernetes.
//
// The program tare-kube does it.
package operatorverb

import (
	"cmp"
	"context"
	"strings"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/companion"
)

// Command acts on resources until it is interrupted.
type Command struct {
	Namespaces []string `help:"Namespaces to watch, separated by commas (default: all)." placeholder:"NAME"`
	Image      string   `help:"Image of the containers of runs whose resource names no image. With --manifests also the operator's (default: this release's)." placeholder:"REF"`
	Metrics    string   `help:"Address of /metrics for Prometheus (default: none)." placeholder:"HOST:PORT"`
	Health     string   `help:"Address of /healthz and /readyz (default: none)." placeholder:"HOST:PORT"`
	Leader     string   `name:"leader-namespace" help:"Namespace for leader election among several operators (default: no election)." placeholder:"NAME"`
	Manifests  bool     `help:"Print the manifests that install the operator, and stop."`
}

// Help shows how it is installed.
func (c *Command) Help() string {
	return `Examples:

  tare operator --manifests | kubectl apply --server-side -f -
  tare operator --namespaces perf --image registry.example/tare:1

The first installs the operator in the namespace tare-system. The second runs it here, in
the cluster that kubectl talks to.

A Study or LoadTest resource declares what to run, where and when. Its status has the
verdict. Results are kept in ConfigMaps in the same namespace.

The first start builds the program from source, which needs Go and takes a few minutes. A
release has it beside tare.`
}

// Run acts until ctx ends.
func (c *Command) Run(ctx context.Context, t *cli.Terminal) error {
	return companion.Run(ctx, t, companion.Kube, c.arguments())
}

func (c *Command) arguments() []string {
	args, image := []string{"operator"}, c.Image
	if c.Manifests {
		image = cmp.Or(image, companion.Image(cli.Version()))
	}
	if len(c.Namespaces) > 0 {
		args = append(args, "-namespaces", strings.Join(c.Namespaces, ","))
	}
	for _, o := range []struct{ flag, value string }{
		{"-image", image}, {"-metrics", c.Metrics}, {"-health", c.Health}, {"-leader-namespace", c.Leader},
	} {
		if o.value != "" {
			args = append(args, o.flag, o.value)
		}
	}
	if c.Manifests {
		args = append(args, "-manifests")
	}
	return args
}
