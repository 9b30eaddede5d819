// Package pods has a command line of tare run in pods of a Kubernetes cluster.
//
// The program tare-kube does it.
package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/cmd/tare/internal/companion"
)

// Flags say which pods there are. They do nothing unless agents are pods.
type Flags struct {
	Agents int `help:"With --on k8s: number of pods that make the load (0: 2)." placeholder:"N"`
	PodFlags
}

// PodFlags say what a pod has.
type PodFlags struct {
	Image    string        `help:"With --on k8s: image with tare, tare-kube and the programs that a study runs (default: that of the release)." placeholder:"REF"`
	CPU      string        `name:"pod-cpu" help:"With --on k8s: CPUs of each pod (default: 1)." placeholder:"N"`
	Memory   string        `name:"pod-memory" help:"With --on k8s: memory of each pod (default: 512Mi)." placeholder:"SIZE"`
	Deadline time.Duration `help:"With --on k8s: interrupt the command after this time (0: 1h)."`
}

// flagNames are those that are not for the pods, --on included.
var flagNames = [...]string{"--on", "--agents", "--image", "--pod-cpu", "--pod-memory", "--deadline"}

// Given reports whether a flag has a value.
func (f Flags) Given() bool { return f != Flags{} }

// Given reports whether a flag has a value.
func (f PodFlags) Given() bool { return f != PodFlags{} }

// Namespace is that of agents as --on names them; "" is the one of the user's context. ok is
// false if they are hosts.
func Namespace(on []string) (namespace string, ok bool) {
	if len(on) != 1 {
		return "", false
	}
	kind, namespace, _ := strings.Cut(on[0], ":")
	if _, err := strconv.Atoi(namespace); err == nil { // a host k8s and its port
		return "", false
	}
	return namespace, kind == "k8s"
}

// Command is what runs in pods.
type Command struct {
	Reads   []string // files that it reads; "" is none
	Writes  []string // files and folders that it writes
	Targets []string // URLs that agents may load; "" is none
}

// usualAgents are as many pods as make the load where their number is not given.
const usualAgents = 2

// Run runs tare's command line in pods of a namespace. What is printed there is printed here,
// and files come and go. The status is that of the command in the pod.
func (f Flags) Run(ctx context.Context, t *cli.Terminal, namespace string, c Command) error {
	if f.Agents < 0 {
		return cli.Usage("leave it out for the default", errors.New("--agents is negative"))
	}
	return f.run(ctx, t, namespace, cmp.Or(f.Agents, usualAgents), c)
}

// RunAlone is Run in a single pod, which makes the load, too.
func (f PodFlags) RunAlone(ctx context.Context, t *cli.Terminal, namespace string, c Command) error {
	return f.run(ctx, t, namespace, 0, c)
}

func (f PodFlags) run(ctx context.Context, t *cli.Terminal, namespace string, agents int, c Command) error {
	args, err := f.arguments(t.Line, namespace, agents, c)
	if err != nil {
		return err
	}
	return companion.Run(ctx, t, companion.Kube, args)
}

// arguments are those of tare-kube.
func (f PodFlags) arguments(line []string, namespace string, agents int, c Command) ([]string, error) {
	image := cmp.Or(f.Image, companion.Image(cli.Version()))
	if image == "" {
		return nil, cli.Usage("name one that has this tare: --image REF", fmt.Errorf("no image has tare %s, which is not a release", cli.Version()))
	}
	if f.Deadline < 0 {
		return nil, cli.Usage("leave it out for the default", errors.New("--deadline is negative"))
	}
	args := []string{"on", "-image", image, "-agents", strconv.Itoa(agents)}
	for _, o := range []struct{ name, value string }{{"-namespace", namespace}, {"-cpu", f.CPU}, {"-memory", f.Memory}} {
		if o.value != "" {
			args = append(args, o.name, o.value)
		}
	}
	if f.Deadline > 0 {
		args = append(args, "-deadline", f.Deadline.String())
	}
	for _, path := range slices.Concat(c.Reads, c.Writes) {
		if path != "" && !filepath.IsLocal(path) {
			return nil, cli.Usage("start tare in the folder that holds it, and name it from there", fmt.Errorf("%s is outside of this folder: pods read and write what is below it", path))
		}
	}
	for _, path := range c.Reads {
		if path != "" {
			args = append(args, "-file", path)
		}
	}
	for _, path := range c.Writes {
		if dir := filepath.ToSlash(filepath.Dir(path)); dir != "." {
			args = append(args, "-folder", dir)
		}
	}
	for _, o := range origins(c.Targets) {
		args = append(args, "-target", o)
	}
	return append(append(args, "--"), strip(line)...), nil
}

// origins are URLs without their paths, each once; "" is none.
func origins(urls []string) []string {
	var all []string
	for _, u := range urls {
		start := 0
		if i := strings.Index(u, "://"); i >= 0 {
			start = i + len("://")
		}
		if i := strings.IndexAny(u[start:], "/?#"); i >= 0 {
			u = u[:start+i]
		}
		if u != "" && !slices.Contains(all, u) {
			all = append(all, u)
		}
	}
	return all
}

// strip takes the flags that say where a command runs off its line. All have values.
func strip(line []string) []string {
	var kept []string
	for i := 0; i < len(line); i++ {
		name, _, whole := strings.Cut(line[i], "=")
		switch {
		case line[i] == "--":
			return append(kept, line[i:]...)
		case !slices.Contains(flagNames[:], name):
			kept = append(kept, line[i])
		case !whole:
			i++
		}
	}
	return kept
}
