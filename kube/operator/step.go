package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/jobs"
	"github.com/tarehq/tare/kube/operator/headline"
	"github.com/tarehq/tare/kube/parcel"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience is how long a run waits for a cluster, or for rights, before it does without.
	patience = 2 * time.Minute
	// beginTime is how long pods may take until they run, images and new nodes included.
	beginTime = 10 * time.Minute
	// cleanUp is how long the operator tries to remove what is left of a run.
	cleanUp = 10 * time.Minute
	// stepTime bounds one step in one cluster, and with it how long a step in the others waits for
	// it. Fetching what a run wrote takes longest.
	stepTime = 2 * time.Minute
	// margin is how much longer than its deadline, which counts from when its pods run, a run
	// may take to begin and to be fetched.
	margin = beginTime + 2*time.Minute
)

// Why a run waits or failed in a cluster.
const (
	reasonUnreachable = "Unreachable"
	reasonRights      = "MissingRights"
	reasonQuota       = "QuotaExceeded"
	reasonNotReady    = "SpecimenNotReady"
	reasonPods        = "PodsNotRunning"
	reasonUnfit       = "Unfit" // what is measured should be doubted
	reasonDeadline    = "DeadlineExceeded"
	reasonConflict    = "Conflict" // something changes there, or is being removed
	reasonFailed      = "Failed"
)

var (
	errMissingRights = errors.New("rights are missing")
	// errNotFetched is of an outcome that is there, for some minutes more.
	errNotFetched = errors.New("the outcome could not be fetched")
)

// fetching holds a token while an outcome is fetched, one at a time: a large one takes a
// quarter of the memory that the operator has.
var fetching = make(chan struct{}, 1)

// jobRunner starts, watches and removes runs in one cluster.
type jobRunner struct {
	start  func(context.Context, client.Client, jobs.Spec) error
	look   func(ctx context.Context, c client.Client, namespace, name string) (jobs.State, error)
	fetch  func(ctx context.Context, config *rest.Config, c client.Client, namespace, name string) (*parcel.Outcome, error)
	remove func(ctx context.Context, c client.Client, namespace, name string) error
}

// orReal is package jobs where r leaves a function open.
func (r jobRunner) orReal() jobRunner {
	if r.start == nil {
		r.start = jobs.Start
	}
	if r.look == nil {
		r.look = jobs.Look
	}
	if r.fetch == nil {
		r.fetch = jobs.Fetch
	}
	if r.remove == nil {
		r.remove = jobs.Remove
	}
	return r
}

// step takes a run one step on in a cluster.
func (p *pass) step(ctx context.Context, c *v1alpha1.ClusterRun) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	if !c.Phase.Ended() && p.now.After(p.status.Active.Started.Add(p.plan.ready+p.plan.deadline+margin)) {
		why := fmt.Sprintf("it did not end within %v", p.plan.deadline)
		if c.Message != "" {
			why += "; " + c.Message
		}
		p.end(c, v1alpha1.Failed, reasonDeadline, why)
	}
	if p.isDone(c) {
		return
	}
	cl, err := p.connect(ctx, c)
	switch {
	case err != nil:
	case c.Phase.Ended():
		err = p.remove(ctx, cl, c)
	case c.Phase == v1alpha1.Pending:
		err = p.prepare(ctx, cl, c)
	case c.Phase == v1alpha1.Preparing:
		err = p.launch(ctx, cl, c)
	default:
		err = p.observe(ctx, cl, c)
	}
	p.judge(c, err)
}

// judge notes what kept a step from being taken, and ends the run there if waiting is no use.
func (p *pass) judge(c *v1alpha1.ClusterRun, err error) {
	if c.Phase.Ended() {
		return // the outcome stands; what is left is removed later
	}
	if err == nil {
		switch c.Reason {
		case reasonUnreachable, reasonRights, reasonQuota, reasonConflict:
			c.WaitsSince, c.Reason, c.Message = nil, "", ""
		}
		return
	}
	reason, known := classify(err)
	if c.Reason != reason && known && reason != reasonConflict {
		p.say(corev1.EventTypeWarning, reason, "cluster %s: %v", c.Name, err)
	}
	since := p.wait(c, reason, err.Error())
	waited := since > patience
	switch {
	case !known, reason == reasonQuota && since > beginTime:
		p.end(c, v1alpha1.Failed, reason, err.Error())
	case reason == reasonUnreachable && c.Phase != v1alpha1.Running && waited:
		p.end(c, v1alpha1.Unreachable, reason, err.Error())
	case reason == reasonRights && waited:
		p.end(c, v1alpha1.Failed, reason, err.Error())
	}
}

// wait notes what a run waits for in a cluster, and returns how long it has by now.
func (p *pass) wait(c *v1alpha1.ClusterRun, reason, message string) time.Duration {
	if c.WaitsSince == nil || c.Reason != reason {
		c.WaitsSince = &metav1.Time{Time: p.now}
	}
	c.Reason, c.Message = reason, headline.Cut(message, mostMessage)
	return p.now.Sub(c.WaitsSince.Time)
}

// end is the end of a run in a cluster.
func (p *pass) end(c *v1alpha1.ClusterRun, phase v1alpha1.Phase, reason, message string) {
	c.Removed, c.WaitsSince = c.Started == nil, nil // nothing was made before Started
	c.Phase, c.Reason, c.Message = phase, reason, headline.Cut(message, mostMessage)
	c.Ended = &metav1.Time{Time: p.now}
}

// isDone reports whether a run has ended in a cluster and nothing of it is left there, or
// nothing more is done about it.
func (p *pass) isDone(c *v1alpha1.ClusterRun) bool {
	return c.Phase.Ended() && (c.Removed || c.Ended != nil && p.now.After(c.Ended.Add(p.cleanUp())))
}

// cleanUp is less where somebody waits for the resource to go.
func (p *pass) cleanUp() time.Duration {
	if !p.res.GetDeletionTimestamp().IsZero() {
		return cleanUp / 5
	}
	return cleanUp
}

// prepare applies the specimen, once all rights are there and the status says that something
// is about to be made.
func (p *pass) prepare(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun) error {
	if c.Started == nil {
		missing, err := jobs.Missing(ctx, cl, c.Namespace)
		switch {
		case err != nil:
			return err
		case len(missing) > 0:
			return fmt.Errorf("in namespace %s the operator may not %s: %w", c.Namespace, strings.Join(missing, ", "), errMissingRights)
		}
		c.Started = &metav1.Time{Time: p.now}
		return nil
	}
	if err := p.apply(ctx, cl, c); err != nil {
		return err
	}
	c.Phase = v1alpha1.Preparing
	return nil
}

// launch starts the jobs once the specimen is ready.
func (p *pass) launch(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun) error {
	waitsFor, err := p.unready(ctx, cl, c)
	if err != nil {
		return err
	}
	if waitsFor != "" {
		if p.wait(c, reasonNotReady, waitsFor) > p.plan.ready {
			p.end(c, v1alpha1.Failed, reasonNotReady, fmt.Sprintf("after %v: %s", p.plan.ready, waitsFor))
		}
		return nil
	}
	if err := p.jobs.start(ctx, cl, p.spec(c)); err != nil {
		return err // starting again creates what is missing
	}
	c.Phase, c.WaitsSince, c.Reason, c.Message = v1alpha1.Running, nil, "", ""
	return nil
}

func (p *pass) spec(c *v1alpha1.ClusterRun) jobs.Spec {
	plan := p.res.Plan()
	s := jobs.Spec{
		Name: c.Jobs, Namespace: c.Namespace, Image: cmp.Or(plan.Image, p.image), Agents: int(plan.Agents), Targets: p.res.Targets(),
		Deadline: p.plan.deadline, Labels: p.labels(c), Owner: p.owner(c),
	}
	s.Args, s.Files = p.res.Command()
	if plan.Resources != nil {
		s.CPU, s.Memory = plan.Resources.CPU, plan.Resources.Memory
	}
	return s
}

// Labels of what a run makes.
const (
	labelOwner   = v1alpha1.Group + "/owner"   // UID of the resource
	labelCluster = v1alpha1.Group + "/cluster" // name of the cluster in the resource
	labelRun     = v1alpha1.Group + "/run"
)

func (p *pass) labels(c *v1alpha1.ClusterRun) map[string]string {
	return map[string]string{labelOwner: string(p.res.GetUID()), labelCluster: c.Name, labelRun: p.status.Active.Name}
}

// owner is the resource, for what is in its own cluster; nil elsewhere, where it is not known.
func (p *pass) owner(c *v1alpha1.ClusterRun) *metav1.OwnerReference {
	if c.KubeconfigSecret != nil {
		return nil
	}
	self := p.self()
	return &self
}

// self is the resource as an owner.
func (p *pass) self() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion().String(), Kind: p.kind, Name: p.res.GetName(), UID: p.res.GetUID()}
}

// observe looks at the jobs, and keeps the outcome once there is one.
func (p *pass) observe(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun) error {
	state, err := p.jobs.look(ctx, cl, c.Namespace, c.Jobs)
	if err != nil {
		return err
	}
	if doubt := headline.Cut(joined(state.Unfit), mostMessage); doubt != "" && state.Phase != jobs.Pending && c.Message != doubt {
		c.Reason, c.Message = reasonUnfit, doubt
		p.say(corev1.EventTypeWarning, reasonUnfit, "cluster %s: %s", c.Name, doubt)
	}
	switch state.Phase {
	case jobs.Done:
		select {
		case fetching <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		o, err := p.jobs.fetch(ctx, cl.config, cl, c.Namespace, c.Jobs)
		<-fetching
		if err != nil {
			return fmt.Errorf("%w: %w", errNotFetched, err)
		}
		p.take(ctx, c, o)
	case jobs.Failed:
		p.end(c, v1alpha1.Failed, reasonFailed, state.Reason)
	case jobs.Gone:
		p.end(c, v1alpha1.Failed, reasonFailed, "somebody removed the jobs")
	case jobs.Pending:
		if p.wait(c, reasonPods, state.Reason) > beginTime {
			p.end(c, v1alpha1.Failed, reasonPods, fmt.Sprintf("tare did not begin within %v: %s", beginTime, state.Reason))
		}
	default:
		if c.Reason == reasonPods {
			c.WaitsSince, c.Reason, c.Message = nil, "", ""
		}
	}
	return nil
}

// remove removes the jobs and the specimen.
func (p *pass) remove(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun) error {
	err := errors.Join(p.jobs.remove(ctx, cl, c.Namespace, c.Jobs), p.removeSpecimen(ctx, cl, c))
	c.Removed = err == nil
	return err
}

// classify says in one word why a step was not taken, and whether waiting may help.
func classify(err error) (reason string, waitingHelps bool) {
	var network net.Error
	var address *url.Error
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"): // other runs may give room
		return reasonQuota, true
	case errors.Is(err, errMissingRights), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return reasonRights, true
	case errors.Is(err, errTerminating), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return reasonConflict, true
	case apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err),
		apierrors.IsInternalError(err), errors.Is(err, errNotFetched), errors.Is(err, errNoKubeconfig), errors.Is(err, context.DeadlineExceeded), errors.As(err, &network), errors.As(err, &address):
		return reasonUnreachable, true
	}
	return reasonFailed, false
}

// joined is a list in a line.
func joined(texts []string) string { return strings.Join(texts, "; ") }
