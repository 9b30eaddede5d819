package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Phase is how far a run is.
type Phase string

// The phases. A run goes through the first three, or fails, or is gone.
const (
	Pending Phase = "Pending" // the coordinator does not run yet: Reason says why
	Running Phase = "Running" // it does; if agents are missing, Reason says why
	Done    Phase = "Done"    // the outcome can be fetched
	Failed  Phase = "Failed"  // there will be no outcome: Reason says why
	Gone    Phase = "Gone"    // there is no such run
)

// State is how a run stands.
type State struct {
	Phase  Phase
	Agents int // asked for
	Ready  int // agents that run
	Reason string
	Unfit  []string          // why what is measured should be doubted, in order of pods
	Nodes  map[string]string // of pods, where they have one
}

// Look reports how a run stands.
func Look(ctx context.Context, c client.Client, namespace, name string) (State, error) {
	s := State{Phase: Gone, Nodes: map[string]string{}}
	job := new(batchv1.Job)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return s, nil
		}
		return s, fmt.Errorf("looking at run %s: %w", name, err)
	}
	agents := new(batchv1.Job)
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: agentsOf(name)}, agents)
	switch {
	case err == nil && agents.Spec.Completions != nil:
		s.Agents = int(*agents.Spec.Completions)
	case client.IgnoreNotFound(err) != nil:
		return s, fmt.Errorf("looking at run %s: %w", name, err)
	}
	pods := new(corev1.PodList)
	if err := c.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{instanceLabel: name}); err != nil {
		return s, fmt.Errorf("looking at run %s: %w", name, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	s.judge(job, pods.Items)
	if reason := failure(agents); reason != "" {
		s.Unfit = append(s.Unfit, "the agents were given up: "+reason)
	}
	return s, nil
}

// judge finds the phase, and what is wrong with the pods.
func (s *State) judge(job *batchv1.Job, pods []corev1.Pod) {
	var coordinator *corev1.Pod
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName != "" {
			s.Nodes[p.Name] = p.Spec.NodeName
		}
		if p.Labels[componentLabel] == coordinatorRole {
			coordinator = p
		}
	}
	waits := ""
	for i := range pods {
		p := &pods[i]
		s.unfit(p, coordinator)
		if p.Labels[componentLabel] == agentRole && isRunning(p.Status.ContainerStatuses, agentContainer) && p.DeletionTimestamp == nil {
			s.Ready++
		}
		waits = cmp.Or(waits, waitsFor(p))
	}
	switch reason := failure(job); {
	case reason != "":
		s.Phase, s.Reason = Failed, reason
		if coordinator != nil {
			s.Reason = cmp.Or(lost(coordinator), reason)
		}
	case holds(job, batchv1.JobComplete) != nil:
		s.Phase, s.Reason = Failed, fmt.Sprintf("its outcome was there for %v, and nobody fetched it", linger)
	case coordinator == nil:
		s.Phase, s.Reason = Pending, cmp.Or(waits, "the coordinator has no pod; `kubectl describe job "+job.Name+"` shows whether a quota or policy forbids it")
	case lost(coordinator) != "":
		s.Phase, s.Reason = Failed, lost(coordinator)
	case isRunning(coordinator.Status.ContainerStatuses, offerContainer):
		s.Phase = Done
	case !hasBegun(coordinator.Status.InitContainerStatuses, tareContainer):
		s.Phase, s.Reason = Pending, cmp.Or(waits, "the coordinator's pod begins")
	default:
		s.Phase = Running
		if s.Ready < s.Agents {
			s.Reason = cmp.Or(waits, fmt.Sprintf("%d of %d agents run", s.Ready, s.Agents))
		}
	}
}

// unfit adds what is wrong with a pod that nevertheless runs, or ran.
func (s *State) unfit(p, coordinator *corev1.Pod) {
	doubt := func(format string, args ...any) {
		s.Unfit = append(s.Unfit, fmt.Sprintf("pod %s "+format, append([]any{p.Name}, args...)...))
	}
	if q := p.Status.QOSClass; q != "" && q != corev1.PodQOSGuaranteed {
		doubt("has the quality of service %s instead of Guaranteed: something in the cluster changed it, such as by adding a container", q)
	}
	if p.Labels[componentLabel] != agentRole {
		return
	}
	if why := lost(p); why != "" {
		doubt("was lost: %s", why)
	}
	if c := coordinator; c != nil && p.Spec.Affinity != nil && p.Spec.NodeName != "" && p.Spec.NodeName == c.Spec.NodeName {
		doubt("makes load on the node of the arms, %s, and competes with them", p.Spec.NodeName)
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.RestartCount > 0 {
			doubt("began again, %d times", c.RestartCount)
		}
	}
}

// lost is why a pod does not go on; "" if it does.
func lost(p *corev1.Pod) string {
	why := cmp.Or(p.Status.Message, p.Status.Reason)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			why = cmp.Or(c.Message, c.Reason)
		}
	}
	where := ""
	if p.Spec.NodeName != "" {
		where = " on node " + p.Spec.NodeName
	}
	switch {
	case p.DeletionTimestamp != nil:
		return fmt.Sprintf("the pod%s is being deleted: %s", where, cmp.Or(why, "somebody asked for it"))
	case p.Status.Phase == corev1.PodFailed:
		return fmt.Sprintf("the pod%s failed: %s", where, cmp.Or(why, ended(p), "no reason is given"))
	}
	return ""
}

// ended is how the first container that failed did.
func ended(p *corev1.Pod) string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return fmt.Sprintf("container %s ended with status %d (%s)", c.Name, t.ExitCode, cmp.Or(t.Message, t.Reason))
		}
	}
	return ""
}

// waitsFor is why a pod does not run yet; "" if it does.
func waitsFor(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s has no node: %s", p.Name, cmp.Or(c.Message, c.Reason))
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		switch w := c.State.Waiting; {
		case w == nil, w.Reason == "PodInitializing", w.Reason == "ContainerCreating":
		default:
			return fmt.Sprintf("pod %s: %s: %s", p.Name, w.Reason, w.Message)
		}
	}
	return ""
}

func isRunning(all []corev1.ContainerStatus, name string) bool {
	return slices.ContainsFunc(all, func(c corev1.ContainerStatus) bool { return c.Name == name && c.State.Running != nil })
}

// hasBegun also holds for one that has ended: the next container begins some time later.
func hasBegun(all []corev1.ContainerStatus, name string) bool {
	return slices.ContainsFunc(all, func(c corev1.ContainerStatus) bool {
		return c.Name == name && (c.State.Running != nil || c.State.Terminated != nil)
	})
}

// failure is why a Job failed; "" if it did not.
func failure(job *batchv1.Job) string {
	if c := holds(job, batchv1.JobFailed); c != nil {
		return cmp.Or(c.Message, c.Reason)
	}
	return ""
}

// holds is a Job's condition of a type; nil if it does not hold.
func holds(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
