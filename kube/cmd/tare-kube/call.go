package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/kube/jobs"
	"github.com/tarehq/tare/kube/parcel"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	lookEvery    = 500 * time.Millisecond
	patience     = 2 * time.Minute  // with an API server that does not answer
	beginWithin  = 5 * time.Minute  // from the creation until tare runs
	removeWithin = 10 * time.Second // less than tare gives this program to end
	interrupted  = 130
)

// caller has a command line run in a cluster.
type caller struct {
	spec   jobs.Spec
	config *rest.Config
	client client.Client
	stderr io.Writer
	said   map[string]bool // lines, each told once
}

// call runs the command line that follows the flags in pods, prints what it printed, puts the
// files that it wrote into the working folder, and ends with its status.
func call(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := &caller{stderr: stderr, said: map[string]bool{}}
	if err := c.parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			err = &failure{status: 2, err: err}
		}
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.checkRights(ctx); err != nil {
		if ctx.Err() != nil {
			return &failure{status: interrupted, err: errors.New("interrupted")}
		}
		return err
	}
	outcome, err := c.perform(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return &failure{status: interrupted, err: errors.New("interrupted; the pods are removed, and what they measured with them")}
		}
		return c.explain(err)
	}
	_, outErr := stdout.Write(outcome.Output)
	_, errErr := stderr.Write(outcome.Errors)
	for _, name := range outcome.LeftOut {
		fmt.Fprintf(stderr, "tare: warning: %s is too large and stayed in the pod\n", name)
	}
	if err := errors.Join(outErr, errErr, outcome.Files.Unpack(".")); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	if outcome.Status != 0 {
		return &failure{status: outcome.Status}
	}
	return nil
}

// parse reads the command line and the files that it names.
func (c *caller) parse(args []string) error {
	var cpu, memory string
	var files list
	flags := flag.NewFlagSet("tare-kube on", flag.ContinueOnError)
	flags.SetOutput(c.stderr)
	flags.StringVar(&c.spec.Namespace, "namespace", "", "namespace (default: that of the kubeconfig's context)")
	flags.StringVar(&c.spec.Image, "image", "", "image with tare and tare-kube")
	flags.IntVar(&c.spec.Agents, "agents", 2, "pods that make load")
	flags.StringVar(&cpu, "cpu", "1", "CPUs of each pod")
	flags.StringVar(&memory, "memory", "512Mi", "memory of each pod")
	flags.DurationVar(&c.spec.Deadline, "deadline", time.Hour, "time after which the command is interrupted")
	flags.Var(&files, "file", "a file that the command reads")
	flags.Var((*list)(&c.spec.Folders), "folder", "a folder that the command writes into")
	flags.Var((*list)(&c.spec.Targets), "target", "a URL that agents may load")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if c.spec.Args = flags.Args(); len(c.spec.Args) == 0 {
		return errors.New("no command is given")
	}
	for _, q := range []struct {
		flag, text string
		into       *resource.Quantity
	}{{"--pod-cpu", cpu, &c.spec.CPU}, {"--pod-memory", memory, &c.spec.Memory}} {
		var err error
		if *q.into, err = resource.ParseQuantity(q.text); err != nil || q.into.Sign() <= 0 {
			return fmt.Errorf("%s: %q is not a quantity of Kubernetes, such as 1, 500m or 512Mi", q.flag, q.text)
		}
	}
	c.spec.Files = parcel.Files{}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		c.spec.Files[path.Clean(filepath.ToSlash(name))] = content
	}
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	c.spec.Name = "tare-" + c.spec.Args[0] + "-" + hex.EncodeToString(random)
	return nil
}

// findCluster finds the cluster as kubectl does: by KUBECONFIG, ~/.kube/config, or the pod that
// this runs in.
func findCluster() (clientcmd.ClientConfig, *rest.Config, error) {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the cluster: %w\ntare: hint: tare finds it as kubectl does: by KUBECONFIG or ~/.kube/config", err)
	}
	config.QPS, config.Burst = 50, 100 // the client waits else, though it asks little
	return loaded, config, nil
}

// connect makes a client of the cluster.
func (c *caller) connect() error {
	loaded, config, err := findCluster()
	if err != nil {
		return err
	}
	c.config = config
	if c.spec.Namespace == "" {
		if c.spec.Namespace, _, err = loaded.Namespace(); err != nil {
			return fmt.Errorf("finding the namespace: %w", err)
		}
	}
	if c.client, err = client.New(c.config, client.Options{}); err != nil {
		return fmt.Errorf("connecting to the cluster at %s: %w", c.config.Host, err)
	}
	return nil
}

// checkRights names all rights that are missing, before anything is created. Where the
// question is not answered, the first refusal says it.
func (c *caller) checkRights(ctx context.Context) error {
	missing, err := jobs.Missing(ctx, c.client, c.spec.Namespace)
	switch {
	case err != nil && !apierrors.IsForbidden(err):
		return fmt.Errorf("connecting to the cluster at %s: %w", c.config.Host, err)
	case err == nil && len(missing) > 0:
		return c.refused(fmt.Errorf("in namespace %s you may not %s", c.spec.Namespace, strings.Join(missing, ", ")))
	}
	return nil
}

// refused adds the Role that gives the rights.
func (c *caller) refused(err error) error {
	text, bad := yaml.Marshal(jobs.Role(c.spec.Namespace))
	return errors.Join(fmt.Errorf("%w\ntare: hint: have somebody apply this Role, and bind it to you:\n%s", err, text), bad)
}

// explain adds the remedy to an error.
func (c *caller) explain(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return c.refused(err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w\ntare: hint: name a namespace that is there, as in --on k8s:NAMESPACE", err)
	}
	return err
}

// perform creates the pods, waits for the outcome and fetches it. The pods are removed,
// whatever happens.
func (c *caller) perform(ctx context.Context) (outcome *parcel.Outcome, err error) {
	c.note("tare %s in namespace %s: %s, and %d pods that make load", c.spec.Args[0], c.spec.Namespace, c.spec.Name, c.spec.Agents)
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
		defer cancel()
		if gone := jobs.Remove(clean, c.client, c.spec.Namespace, c.spec.Name); gone != nil {
			c.note("warning: %v\nhint: kubectl -n %s delete jobs,services,secrets -l app.kubernetes.io/instance=%s", gone, c.spec.Namespace, c.spec.Name)
		}
	}()
	if err := jobs.Start(ctx, c.client, c.spec); err != nil {
		return nil, err
	}
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.fetch(ctx)
}

// fetch fetches the outcome. It waits for some minutes: what an hour measured is not to be lost
// by an API server that is away for a moment.
func (c *caller) fetch(ctx context.Context) (*parcel.Outcome, error) {
	for begun := time.Now(); ; {
		outcome, err := jobs.Fetch(ctx, c.config, c.client, c.spec.Namespace, c.spec.Name)
		if err == nil || ctx.Err() != nil || time.Since(begun) > patience || apierrors.IsForbidden(err) {
			return outcome, err
		}
		c.note("warning: %v", err)
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// wait waits until there is an outcome.
func (c *caller) wait(ctx context.Context) error {
	begun, answered := time.Now(), time.Now()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		state, err := jobs.Look(ctx, c.client, c.spec.Namespace, c.spec.Name)
		if err == nil {
			answered = time.Now()
		}
		for _, text := range state.Unfit {
			c.note("warning: %s", text)
		}
		switch {
		case err != nil && (time.Since(answered) > patience || ctx.Err() != nil || apierrors.IsForbidden(err)):
			return err
		case err != nil:
			c.note("warning: %v", err)
		case state.Phase == jobs.Done:
			return nil
		case state.Phase == jobs.Failed:
			return fmt.Errorf("the coordinator gave no result: %s", state.Reason)
		case state.Phase == jobs.Gone:
			return errors.New("the coordinator gave no result: somebody deleted its Job")
		case state.Phase == jobs.Pending && time.Since(begun) > beginWithin:
			return fmt.Errorf("tare did not begin within %v: %s", beginWithin, state.Reason)
		default:
			c.note("%s", cmp.Or(state.Reason, c.spread(state)))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// spread tells where the pods run.
func (c *caller) spread(s jobs.State) string {
	pods := map[string][]string{}
	for pod, node := range s.Nodes {
		pods[node] = append(pods[node], strings.TrimPrefix(pod, c.spec.Name+"-"))
	}
	var all []string
	for node, names := range pods {
		all = append(all, fmt.Sprintf("%d on node %s", len(names), node))
	}
	slices.Sort(all)
	return "all pods run: " + strings.Join(all, ", ")
}

// note tells a line on standard error, once.
func (c *caller) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !c.said[line] {
		c.said[line] = true
		fmt.Fprintf(c.stderr, "tare: %s\n", strings.ReplaceAll(line, "\n", "\ntare: "))
	}
}
