package operator

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/operator/headline"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Resource is a Study or a LoadTest.
type Resource interface {
	client.Object
	Plan() *v1alpha1.RunSpec
	Report() *v1alpha1.Status
	Command() (args []string, files map[string][]byte)
	Targets() []string
}

// finalizer keeps a resource that is deleted until nothing of its run is left.
const finalizer = v1alpha1.Group + "/run"

// reconciler acts on the resources of a kind. It is safe for concurrent use.
type reconciler struct {
	kind    string
	empty   func() Resource
	cached  client.Client // reads resources
	direct  cluster
	remote  *remotes
	events  events.EventRecorder
	counted *counters

	image string
	now   func() time.Time
	poll  time.Duration
	jobs  jobRunner
}

// pass is one look at a resource. What is said of it comes after its status is written, so
// that nothing is said twice.
type pass struct {
	*reconciler
	res    Resource
	status *v1alpha1.Status
	plan   schedulePlan
	now    time.Time

	mu    sync.Mutex
	later []func()
}

// Reconcile takes a resource the next step on.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	res := r.empty()
	if err := r.cached.Get(ctx, req.NamespacedName, res); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wait, err := r.reconcile(ctx, res)
	if apierrors.IsConflict(err) { // the cache was behind
		wait, err = 200*time.Millisecond, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// reconcile takes a resource on. It has the finalizer as long as it has a run, of which nothing is
// made before: so that one at rest can be deleted without the operator.
func (r *reconciler) reconcile(ctx context.Context, res Resource) (wait time.Duration, err error) {
	deleted := !res.GetDeletionTimestamp().IsZero()
	switch {
	case deleted && !controllerutil.ContainsFinalizer(res, finalizer):
		return 0, nil
	case !deleted && res.Report().Active != nil:
		if err := r.patchFinalizer(ctx, res, controllerutil.AddFinalizer); err != nil {
			return 0, err
		}
	}
	before := res.DeepCopyObject().(Resource)
	p := &pass{reconciler: r, res: res, status: res.Report(), now: r.now()}
	wait = p.advance(ctx, deleted)
	if !equality.Semantic.DeepEqual(before.Report(), p.status) {
		err := r.direct.Status().Update(ctx, res)
		if deleted && apierrors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("writing the status: %w", err)
		}
	}
	for _, say := range p.later {
		say()
	}
	if p.status.Active == nil {
		return wait, r.patchFinalizer(ctx, res, controllerutil.RemoveFinalizer)
	}
	return wait, nil
}

// patchFinalizer changes the finalizers alone: fields that this version of the types does not
// know stay as they are.
func (r *reconciler) patchFinalizer(ctx context.Context, res Resource, change func(client.Object, string) bool) error {
	before := res.DeepCopyObject().(Resource)
	if !change(res, finalizer) {
		return nil
	}
	err := r.direct.Patch(ctx, res, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("writing the finalizer: %w", err)
	}
	return nil
}

// advance takes the resource one step on, within its status. It returns when to look again, 0
// for when something changes.
func (p *pass) advance(ctx context.Context, deleted bool) time.Duration {
	p.status.ObservedGeneration = p.res.GetGeneration()
	plan, err := parsePlan(p.res.Plan())
	p.plan = plan
	switch {
	case deleted:
		return p.dissolve(ctx)
	case err != nil:
		p.status.NextRun = nil
		p.condition(v1alpha1.Accepted, false, "Invalid", err.Error())
	case p.res.Plan().Suspend:
		p.missed() // and stays so
		p.status.NextRun = nil
		p.condition(v1alpha1.Accepted, true, "Suspended", "no run begins while suspend is true")
	default:
		p.condition(v1alpha1.Accepted, true, "Planned", "")
		p.begin()
	}
	if p.status.Active != nil {
		return p.follow(ctx)
	}
	p.condition(v1alpha1.InRun, false, "Waiting", "")
	if p.status.NextRun != nil {
		return max(time.Second, p.status.NextRun.Sub(p.now))
	}
	return 0
}

// begin begins a run if one is due. It is made in the clusters in later passes, once the
// status has it.
func (p *pass) begin() {
	if p.plan.schedule == nil {
		p.status.NextRun, p.status.ScheduledThrough, p.status.Schedule = nil, nil, ""
		if p.status.Active == nil && p.status.RanGeneration != p.res.GetGeneration() {
			p.start(p.now)
		}
		return
	}
	through := p.status.ScheduledThrough
	tick, due := p.missed()
	if next := p.plan.nextAfter(p.now); next.IsZero() {
		p.status.NextRun = nil // such as on the 30th of February
	} else {
		p.status.NextRun = &metav1.Time{Time: next}
	}
	switch {
	case !due:
	case p.status.Active == nil:
		p.start(tick)
	case p.res.Plan().ConcurrencyPolicy == v1alpha1.Replace:
		p.status.ScheduledThrough = through // the run stays due until nothing of this one is left
		p.abandon("Replaced", "the next run was due")
	default:
		p.say(corev1.EventTypeWarning, "RunSkipped", "the run of %s was skipped: %s goes on", tick.Format(time.RFC3339), p.status.Active.Name)
	}
}

// missed is the last tick that has come and had no run, and takes it for dealt with. A
// schedule that is new counts from now. So does one that is through with more than the next tick:
// the clock was ahead, and no run would begin until it is there again.
func (p *pass) missed() (tick time.Time, due bool) {
	if p.plan.schedule == nil {
		return time.Time{}, false
	}
	text, through, next := p.plan.zone.String()+" "+p.res.Plan().Schedule, p.status.ScheduledThrough, p.plan.nextAfter(p.now)
	if through == nil || p.status.Schedule != text || !next.IsZero() && through.After(next) {
		p.status.ScheduledThrough, p.status.Schedule = &metav1.Time{Time: p.now}, text
	}
	if tick, due = p.plan.lastTick(p.status.ScheduledThrough.Time, p.now); due {
		p.status.ScheduledThrough = &metav1.Time{Time: tick}
	}
	return tick, due
}

// start puts a new run into the status.
func (p *pass) start(at time.Time) {
	spec := p.res.Plan()
	// A second's number tells runs apart, the letter those of a study from those of a load test.
	letter := map[string]string{"Study": "s", "LoadTest": "l"}[p.kind]
	run := &v1alpha1.Run{
		Name:  p.res.GetName() + "-" + letter + strconv.FormatInt(at.Unix(), 36),
		Phase: v1alpha1.Pending, Started: metav1.NewTime(p.now),
	}
	clusters := spec.Clusters
	if len(clusters) == 0 {
		clusters = []v1alpha1.Cluster{{Name: here}}
	}
	for i, c := range clusters {
		part := v1alpha1.ClusterRun{
			Name: c.Name, Phase: v1alpha1.Pending, Jobs: run.Name + "-" + strconv.FormatInt(int64(i), 36),
			Namespace: p.res.GetNamespace(), KubeconfigSecret: c.KubeconfigSecret, Specimen: objectsOf(spec.Specimen),
		}
		if c.Namespace != "" && c.KubeconfigSecret != nil {
			part.Namespace = c.Namespace
		}
		run.Clusters = append(run.Clusters, part)
	}
	p.status.Active, p.status.RanGeneration = run, p.res.GetGeneration()
	p.say(corev1.EventTypeNormal, "RunStarted", "run %s began in %s", run.Name, plural(len(run.Clusters), "cluster"))
}

// here is what the operator's own cluster is called where the spec names none.
const here = "here"

// follow takes the run on in all its clusters at once, and ends it when all are done.
func (p *pass) follow(ctx context.Context) time.Duration {
	run := p.status.Active
	var wg sync.WaitGroup
	for i := range run.Clusters {
		wg.Go(func() { p.step(ctx, &run.Clusters[i]) })
	}
	wg.Wait()
	done := true
	for i := range run.Clusters {
		done = done && p.isDone(&run.Clusters[i])
	}
	run.Phase, run.Verdict = merge(run.Clusters)
	p.conditions(run)
	if !done {
		p.condition(v1alpha1.InRun, true, "RunActive", run.Name)
		return p.poll
	}
	p.finish(ctx, run)
	return time.Millisecond // the next run may be due
}

// finish moves a run that is done into the history.
func (p *pass) finish(ctx context.Context, run *v1alpha1.Run) {
	run.Ended = &metav1.Time{Time: p.now}
	p.status.Verdict, p.status.Active = run.Verdict, nil
	p.condition(v1alpha1.Success, run.Phase == v1alpha1.Succeeded, string(run.Phase), run.Verdict)
	p.condition(v1alpha1.InRun, false, "Waiting", "")
	kind := corev1.EventTypeNormal
	if run.Phase != v1alpha1.Succeeded {
		kind = corev1.EventTypeWarning
	}
	p.say(kind, "Run"+string(run.Phase), "%s: %s", run.Name, run.Verdict)
	p.after(func() { p.counted.count(p.kind, run) })
	for i := range run.Clusters {
		c := &run.Clusters[i]
		if !c.Removed {
			p.say(corev1.EventTypeWarning, "LeftBehind", "cluster %s, namespace %s: what is left of %s could not be removed", c.Name, c.Namespace, c.Jobs)
		}
		c.Specimen = nil // the history is to stay small
	}

	keep := v1alpha1.DefaultHistory
	if limit := p.res.Plan().HistoryLimit; limit != nil {
		keep = int(*limit)
	}
	all := append([]v1alpha1.Run{*run}, p.status.History...)
	keep = min(keep, len(all))
	p.status.History = all[:keep]
	for _, old := range all[keep:] {
		p.forget(ctx, old)
	}
	if keep == 0 {
		p.status.History = nil
	}
}

// dissolve ends the run of a deleted resource.
func (p *pass) dissolve(ctx context.Context) time.Duration {
	if p.status.Active == nil {
		return 0
	}
	p.abandon("Deleted", "the resource was deleted")
	p.follow(ctx)
	return time.Second
}

// abandon ends a run without a result.
func (p *pass) abandon(reason, why string) {
	for i := range p.status.Active.Clusters {
		if c := &p.status.Active.Clusters[i]; !c.Phase.Ended() {
			p.end(c, v1alpha1.Failed, reason, why)
		}
	}
}

// conditions says of a run which clusters were not reached, and which rights are missing.
func (p *pass) conditions(run *v1alpha1.Run) {
	var unreached, forbidden []string
	for _, c := range run.Clusters {
		switch text := c.Name + ": " + c.Message; c.Reason {
		case reasonUnreachable:
			unreached = append(unreached, text)
		case reasonRights:
			forbidden = append(forbidden, text)
		}
	}
	p.condition(v1alpha1.Reachable, len(unreached) == 0, reasonUnreachable, joined(unreached))
	p.condition(v1alpha1.Allowed, len(forbidden) == 0, reasonRights, joined(forbidden))
}

// condition sets a condition. A reason is that of a condition that does not hold, unless it
// has only one.
func (p *pass) condition(name string, holds bool, reason, message string) {
	c := metav1.Condition{
		Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: headline.Cut(message, 2000),
		ObservedGeneration: p.res.GetGeneration(), LastTransitionTime: metav1.NewTime(p.now),
	}
	if holds {
		c.Status = metav1.ConditionTrue
		if name == v1alpha1.Reachable || name == v1alpha1.Allowed {
			c.Reason = name
		}
	}
	meta.SetStatusCondition(&p.status.Conditions, c)
}

// say has an event follow once the status is written.
func (p *pass) say(kind, reason, format string, args ...any) {
	text := headline.Cut(fmt.Sprintf(format, args...), 1000) // an event has at most 1,024 bytes
	p.after(func() { p.events.Eventf(p.res, nil, kind, reason, "Run", "%s", text) })
}

func (p *pass) after(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later = append(p.later, f)
}
