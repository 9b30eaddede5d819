package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/kube/carry"
	"github.com/tarehq/tare/kube/jobs"
	"github.com/tarehq/tare/kube/parcel"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

func spec() jobs.Spec {
	return jobs.Spec{
		Name: "try", Namespace: "ns", Image: "tare:1", Agents: 2, Args: []string{"load", "-r", "100", "http://svc.ns/a?b=c"},
		Targets: []string{"http://svc.ns/a", "svc.ns/b", "https://Other.ns/{{.x}}", "http://[fd00::1]:8080/"},
		Files:   parcel.Files{"list.txt": []byte("GET /\n")}, Labels: map[string]string{"team": "shop"},
	}
}

func object[T client.Object](t *testing.T, c client.Client, name string, into T) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// TestStart looks at the objects of a load.
func TestStart(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	if err := jobs.Start(t.Context(), c, spec()); err != nil {
		t.Fatal(err)
	}
	coordinator, agents := object(t, c, "try", new(batchv1.Job)), object(t, c, "try-agent", new(batchv1.Job))
	first := coordinator.Spec.Template.Spec.InitContainers[0]
	if got, want := strings.Join(first.Command, " "), "-agent try-agent-0.try.ns.svc:7411 -agent try-agent-1.try.ns.svc:7411 -- /usr/bin/tare"; !strings.HasSuffix(got, want) {
		t.Errorf("the coordinator runs\n%s\nwant it to end with\n%s", got, want)
	}
	if got, want := strings.Join(agents.Spec.Template.Spec.Containers[0].Command, " "),
		"-allow svc.ns:80 -allow Other.ns:443 -allow [fd00::1]:8080 -- /usr/bin/tare"; !strings.HasSuffix(got, want) {
		t.Errorf("agents run %q, want it to end with %q", got, want)
	}
	if agents.Spec.Template.Spec.Affinity != nil {
		t.Error("agents of a load keep away from its coordinator, where no arm is")
	}
	for _, job := range []*batchv1.Job{coordinator, agents} {
		checkJob(t, job)
	}
	secret := object(t, c, "try", new(corev1.Secret))
	var command []string
	if err := json.Unmarshal(secret.Data[carry.CommandKey], &command); err != nil || !slices.Equal(command, spec().Args) {
		t.Errorf("got the command line %q, %v", command, err)
	}
	var files parcel.Files
	if err := json.Unmarshal(secret.Data[carry.FilesKey], &files); err != nil || string(files["list.txt"]) != "GET /\n" {
		t.Errorf("got the files %q, %v", files, err)
	}
	if _, kept := secret.Data["ca.key"]; kept {
		t.Error("the authority's key is in the Secret")
	}
	for _, item := range agents.Spec.Template.Spec.Volumes[0].Secret.Items {
		if strings.HasPrefix(item.Key, "coordinator") || item.Key == carry.FilesKey || item.Key == carry.CommandKey {
			t.Errorf("agents get %s", item.Key)
		}
	}
	service := object(t, c, "try", new(corev1.Service))
	if service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("got the service %+v, want names for pods that are not ready", service.Spec)
	}
	for _, o := range []client.Object{agents, secret, service} {
		if owners := o.GetOwnerReferences(); len(owners) != 1 || owners[0].Name != "try" || owners[0].Kind != "Job" || o.GetLabels()["team"] != "shop" {
			t.Errorf("%T is owned by %v and has the labels %v", o, owners, o.GetLabels())
		}
	}
	if err := jobs.Start(t.Context(), c, spec()); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if again := object(t, c, "try", new(corev1.Secret)); !slices.Equal(again.Data["coordinator.key"], secret.Data["coordinator.key"]) {
		t.Error("the second time made other certificates, which the pods do not have")
	}
	for range 2 {
		if err := jobs.Remove(t.Context(), c, "ns", "try"); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := jobs.Look(t.Context(), c, "ns", "try"); err != nil || s.Phase != jobs.Gone {
		t.Errorf("after Remove got %+v, %v", s, err)
	}
}

// checkJob wants equal requests and limits in all containers, and an end by itself.
func checkJob(t *testing.T, job *batchv1.Job) {
	t.Helper()
	pod := job.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		r := c.Resources
		if r.Requests.Cpu().IsZero() || !r.Requests.Cpu().Equal(*r.Limits.Cpu()) || r.Requests.Memory().IsZero() || !r.Requests.Memory().Equal(*r.Limits.Memory()) {
			t.Errorf("container %s of %s has %+v, which is not Guaranteed", c.Name, job.Name, r)
		}
	}
	if job.Spec.ActiveDeadlineSeconds == nil || job.Spec.TTLSecondsAfterFinished == nil || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("job %s has no deadline, is kept for ever, or has rights: %+v", job.Name, job.Spec)
	}
}

// TestStartStudy has arms in the coordinator's pod.
func TestStartStudy(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	s := spec()
	s.Args, s.Targets = []string{"run", "--quick", "mine.yaml"}, nil
	s.Owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u"}
	if err := jobs.Start(t.Context(), c, s); err != nil {
		t.Fatal(err)
	}
	coordinator, agents := object(t, c, "try", new(batchv1.Job)), object(t, c, "try-agent", new(batchv1.Job))
	if got := strings.Join(coordinator.Spec.Template.Spec.InitContainers[0].Command, " "); !strings.HasSuffix(got, "-arm-on $(POD_IP) -- /usr/bin/tare") {
		t.Errorf("the coordinator runs %q, want arms on the pod's address", got)
	}
	if got := strings.Join(agents.Spec.Template.Spec.Containers[0].Command, " "); !strings.HasSuffix(got, "-arms try-0.try.ns.svc -- /usr/bin/tare") {
		t.Errorf("agents run %q, want them to load arms", got)
	}
	if agents.Spec.Template.Spec.Affinity == nil || coordinator.Spec.Template.Spec.Affinity == nil {
		t.Error("agents and arms do not keep apart")
	}
	if coordinator.OwnerReferences[0].Name != "o" || agents.OwnerReferences[0].Name != "o" {
		t.Errorf("owned by %v and %v, want o", coordinator.OwnerReferences, agents.OwnerReferences)
	}
}

// TestHasArms has agents keep away from arms, whichever verb starts them.
func TestHasArms(t *testing.T) {
	for verb, want := range map[string]bool{"run": true, "gate": true, "ab": true, "load": false, "flow": false} {
		c := fake.NewClientBuilder().Build()
		s := spec()
		s.Args = []string{verb, "x"}
		if err := jobs.Start(t.Context(), c, s); err != nil {
			t.Fatal(err)
		}
		pod := object(t, c, "try-agent", new(batchv1.Job)).Spec.Template.Spec
		if got := pod.Affinity != nil && slices.Contains(pod.Containers[0].Command, "-arms"); got != want {
			t.Errorf("tare %s: agents load arms, away from them: %t, want %t", verb, got, want)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	for want, change := range map[string]func(*jobs.Spec){
		"is not a DNS label":      func(s *jobs.Spec) { s.Name = "Try" },
		"are required":            func(s *jobs.Spec) { s.Image = "" },
		"1001 agents":             func(s *jobs.Spec) { s.Agents = 1001 },
		"at most 524288 fit":      func(s *jobs.Spec) { s.Files = parcel.Files{"a": make([]byte, 600<<10)} },
		"negative":                func(s *jobs.Spec) { s.Deadline = -1 },
		"is not a URL such as":    func(s *jobs.Spec) { s.Targets = []string{"ftp://svc.ns/"} },
		"would be the pod":        func(s *jobs.Spec) { s.Targets = []string{":8080/a"} },
		"target \"http://…@svc:x": func(s *jobs.Spec) { s.Targets = []string{"http://user:secret@svc:x/"} },
	} {
		s := spec()
		change(&s)
		c := fake.NewClientBuilder().Build()
		if err := jobs.Start(t.Context(), c, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		if state, err := jobs.Look(t.Context(), c, "ns", s.Name); err != nil || state.Phase != jobs.Gone {
			t.Errorf("%s: something was created: %+v, %v", want, state, err)
		}
	}
}

func pod(name, role string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{
		"app.kubernetes.io/instance": "try", "app.kubernetes.io/component": role,
	}}}
	p.Spec.NodeName, p.Status.QOSClass, p.Status.Phase = "n-"+name, corev1.PodQOSGuaranteed, corev1.PodRunning
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if role == "agent" {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: running}}
	} else {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "tare", State: running}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "outcome", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestLook(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}
	for name, c := range map[string]struct {
		coordinator, agent func(*corev1.Pod)
		phase              jobs.Phase
		reason, unfit      string
	}{
		"runs": {phase: jobs.Running},
		"done": {phase: jobs.Done, coordinator: func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}},
		"has measured": {phase: jobs.Running, coordinator: func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		}},
		"no image": {phase: jobs.Pending, reason: "ImagePullBackOff: not there", coordinator: func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not there"}}
		}},
		"no room for an agent": {phase: jobs.Running, reason: "pod try-agent-0 has no node: 0/2 nodes", agent: func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.ContainerStatuses = "", nil
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes"}}
		}},
		"memory": {phase: jobs.Failed, reason: "container tare ended with status 137 (OOMKilled)", coordinator: func(p *corev1.Pod) {
			p.Status.Phase, p.Status.InitContainerStatuses[0].State = corev1.PodFailed, ended
		}},
		"node lost": {phase: jobs.Failed, reason: "on node n-try-0 is being deleted: Taint manager", coordinator: func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"x"}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Message: "Taint manager"}}
		}},
		"agent evicted": {phase: jobs.Running, reason: "0 of 1 agents run", unfit: "pod try-agent-0 was lost: the pod on node n-try-agent-0 failed: disk is full", agent: func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message, p.Status.ContainerStatuses = corev1.PodFailed, "Evicted", "disk is full", nil
		}},
		"side car": {phase: jobs.Running, unfit: "quality of service Burstable", agent: func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSBurstable }},
		"one node": {phase: jobs.Running, unfit: "on the node of the arms, n-try-0", agent: func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.Affinity = "n-try-0", new(corev1.Affinity)
		}},
		"began again": {phase: jobs.Running, unfit: "began again, 2 times", agent: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 2 }},
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "try"}}
		agents := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "try-agent"}, Spec: batchv1.JobSpec{Completions: new(int32(1))}}
		client := fake.NewClientBuilder().WithObjects(job, agents, pod("try-0", "coordinator", c.coordinator), pod("try-agent-0", "agent", c.agent)).Build()
		got, err := jobs.Look(t.Context(), client, "ns", "try")
		if err != nil || got.Phase != c.phase || !strings.Contains(got.Reason, c.reason) || (c.reason == "") != (got.Reason == "") ||
			(c.unfit == "") != (len(got.Unfit) == 0) || !strings.Contains(strings.Join(got.Unfit, "\n"), c.unfit) {
			t.Errorf("%s: got %+v, %v; want %s, %q and %q", name, got, err, c.phase, c.reason, c.unfit)
		}
	}
}

func TestLookEnded(t *testing.T) {
	for kind, message := range map[batchv1.JobConditionType]string{
		batchv1.JobFailed:   "Job was active longer than specified deadline",
		batchv1.JobComplete: "nobody fetched it",
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "try"}}
		job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
		if kind == batchv1.JobFailed {
			job.Status.Conditions[0].Message = message
		}
		got, err := jobs.Look(t.Context(), fake.NewClientBuilder().WithObjects(job).Build(), "ns", "try")
		if err != nil || got.Phase != jobs.Failed || !strings.Contains(got.Reason, message) {
			t.Errorf("%s: got %+v, %v; want it failed, and %q", kind, got, err, message)
		}
	}
}

// TestMissing has a server that allows all but two things.
func TestMissing(t *testing.T) {
	refused := []string{"create secrets", "create pods/portforward"}
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
			if !ok {
				return errors.New("asked for something else")
			}
			a := review.Spec.ResourceAttributes
			what := a.Verb + " " + a.Resource
			if a.Subresource != "" {
				what += "/" + a.Subresource
			}
			review.Status.Allowed = a.Namespace == "ns" && !slices.Contains(refused, what)
			return nil
		},
	})
	if got, err := jobs.Missing(t.Context(), c, "ns"); err != nil || !slices.Equal(got, refused) {
		t.Errorf("got %q, %v; want %q", got, err, refused)
	}
	if got, err := jobs.Missing(t.Context(), c, "other"); err != nil || len(got) != 10 {
		t.Errorf("got %q, %v; want all ten", got, err)
	}
}

// TestDocsRole has the page show the Role that is needed.
func TestDocsRole(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	got := new(rbacv1.Role)
	if err := yaml.UnmarshalStrict([]byte(text), got); err != nil {
		t.Fatal(err)
	}
	if want := jobs.Role("shop"); !reflect.DeepEqual(got, want) {
		t.Errorf("the page shows %+v, want %+v", got, want)
	}
}
