package jobs_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/jobs"
	"github.com/tarehq/tare/kube/testcluster"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// played are nodes without a kubelet: the test says for them that they live, and what their
// pods do.
type played struct {
	*testcluster.Cluster
	nodes []string
}

func newPlayed(t *testing.T, nodes int) *played {
	p := &played{Cluster: testcluster.Start(t, testcluster.Options{})}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("256"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("500"),
	}
	for i := range nodes {
		name := fmt.Sprintf("played-%d", i)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		if err := p.Client.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		n.Status = corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()},
		}}
		if err := p.Client.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		p.nodes = append(p.nodes, name)
	}
	return p
}

// live has the nodes renew their leases until ctx ends.
func (p *played) live(ctx context.Context) {
	for ctx.Err() == nil {
		for _, name := range p.nodes {
			now := metav1.NowMicro()
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
			lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: new(int32(4)), RenewTime: &now}
			if err := p.Client.Create(ctx, lease); err == nil {
				continue
			}
			if err := p.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease); err == nil {
				lease.Spec.RenewTime = &now
				_ = p.Client.Update(ctx, lease) // the next one is as good
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// run has all pods that have a node run, and those end that are to go. It returns how many
// pods there are.
func (p *played) run(ctx context.Context) (int, error) {
	pods := new(corev1.PodList)
	if err := p.Client.List(ctx, pods, client.InNamespace("default")); err != nil {
		return 0, err
	}
	work := make(chan *corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Spec.NodeName != "" && (pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending) {
			work <- pod
		}
	}
	close(work)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for pod := range work {
				p.turn(ctx, pod)
			}
		})
	}
	all.Wait()
	return len(pods.Items), nil
}

// turn does for a pod what a kubelet would. What fails is done the next time.
func (p *played) turn(ctx context.Context, pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		_ = p.Client.Delete(ctx, pod, client.GracePeriodSeconds(0))
		return
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	pod.Status.Phase = corev1.PodRunning
	if len(pod.Spec.InitContainers) > 0 { // the coordinator, in which tare runs
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.InitContainers[0].Name, State: running}}
	} else {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: running}}
	}
	_ = p.Client.Status().Update(ctx, pod)
}

// TestThousand has a thousand agents spread over ten nodes by the real scheduler and the real
// Job controller, and removes all that was made.
func TestThousand(t *testing.T) {
	const agents, nodes = 1000, 10
	p := newPlayed(t, nodes)
	ctx, cancel := context.WithCancel(t.Context())
	var living sync.WaitGroup
	living.Go(func() { p.live(ctx) })
	defer living.Wait()
	defer cancel()
	s := jobs.Spec{
		Name: "thousand", Namespace: "default", Image: "testcluster.local/none:1", Agents: agents,
		Args: []string{"load", "-r", "1000000", "http://svc.default/"}, Targets: []string{"http://svc.default/"},
	}
	p.Await("the default namespace", 30*time.Second, func(ctx context.Context) error { return jobs.Start(ctx, p.Client, s) })
	begun := time.Now()
	var state jobs.State
	p.Await("a thousand agents", 4*time.Minute, func(ctx context.Context) error {
		if _, err := p.run(ctx); err != nil {
			return err
		}
		var err error
		if state, err = jobs.Look(ctx, p.Client, s.Namespace, s.Name); err == nil && (state.Phase != jobs.Running || state.Ready < agents) {
			err = fmt.Errorf("%s: %s", state.Phase, state.Reason)
		}
		return err
	})
	t.Logf("%d agents ran %v after the start", state.Ready, time.Since(begun).Round(100*time.Millisecond))
	on := map[string]int{}
	for _, node := range state.Nodes {
		on[node]++
	}
	for _, name := range p.nodes { // a hundred each, and the coordinator somewhere
		if on[name] < 80 || on[name] > 121 {
			t.Errorf("%s has %d of %d pods: they are not spread: %v", name, on[name], len(state.Nodes), on)
			break
		}
	}
	if len(state.Unfit) > 0 {
		t.Errorf("%d pods are unfit, such as %s", len(state.Unfit), state.Unfit[0])
	}
	if err := jobs.Remove(t.Context(), p.Client, s.Namespace, s.Name); err != nil {
		t.Fatal(err)
	}
	p.Await("the end of all pods", 3*time.Minute, func(ctx context.Context) error {
		left, err := p.run(ctx)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d are left", left)
		}
		return err
	})
}
