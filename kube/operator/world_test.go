package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/chart"
	"github.com/tarehq/tare/kube/jobs"
	"github.com/tarehq/tare/kube/parcel"
	"github.com/tarehq/tare/kube/testcluster"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) {
	if os.Getenv(childConfig) != "" {
		os.Exit(beOperator())
	}
	os.Exit(m.Run())
}

// place is a namespace of a cluster, in which a test plays the Job controller and the kubelet.
type place struct {
	*testcluster.Cluster
	t         *testing.T
	admin     client.Client
	namespace string
}

// newPlace starts a cluster, or skips the test.
func newPlace(t *testing.T) *place {
	t.Helper()
	return (&place{Cluster: testcluster.Start(t, testcluster.Options{Bare: true})}).another(t)
}

// another is another namespace of the same cluster.
func (p *place) another(t *testing.T) *place {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	other := &place{Cluster: p.Cluster, t: t}
	if other.admin, err = client.New(p.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	// Pods have to be such as the strictest standard of Kubernetes admits.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := other.admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	other.namespace = ns.Name
	return other
}

// install applies the manifests that install the operator.
func (p *place) install() {
	p.t.Helper()
	for text := range strings.SplitSeq(chart.Manifests(""), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			p.t.Fatal(err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if err := p.admin.Apply(p.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			p.t.Fatalf("applying %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	p.eventually("the definitions are served", func() error {
		return errors.Join(p.admin.List(p.t.Context(), &v1alpha1.StudyList{}), p.admin.List(p.t.Context(), &v1alpha1.LoadTestList{}))
	})
}

// account is that of the operator by its manifests.
const account = "system:serviceaccount:tare-system:tare-operator"

func (p *place) eventually(what string, check func() error) {
	p.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// secret keeps a kubeconfig in the operator's cluster.
func (p *place) secret(name string, kubeconfig string) {
	p.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}, StringData: map[string]string{"kubeconfig": kubeconfig}}
	if err := p.admin.Create(p.t.Context(), s); err != nil {
		p.t.Fatal(err)
	}
}

// kubeconfig is that of the user "remote", who begins without any right.
func (p *place) kubeconfig() string {
	p.t.Helper()
	text, err := os.ReadFile(p.Kubeconfig("remote", "default"))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// grant gives the user of the kubeconfig what runs need in the namespace.
func (p *place) grant() {
	p.t.Helper()
	role := jobs.Role(p.namespace)
	role.Rules = append(role.Rules,
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "create", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "create", "patch", "delete"}})
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "remote"}},
	}
	if err := errors.Join(p.admin.Create(p.t.Context(), role), p.admin.Create(p.t.Context(), binding)); err != nil {
		p.t.Fatal(err)
	}
}

// playDeployments has all deployments of the namespace be ready.
func (p *place) playDeployments() {
	p.t.Helper()
	var all appsv1.DeploymentList
	if err := p.admin.List(p.t.Context(), &all, client.InNamespace(p.namespace)); err != nil {
		p.t.Fatal(err)
	}
	for i := range all.Items {
		d := &all.Items[i]
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas, ReadyReplicas: *d.Spec.Replicas, AvailableReplicas: *d.Spec.Replicas}
		if err := p.admin.Status().Update(p.t.Context(), d); err != nil {
			p.t.Fatal(err)
		}
	}
}

// playCoordinators makes the coordinators' pods of all jobs in the namespace, with an outcome
// to fetch. It returns how many pods it made.
func (p *place) playCoordinators() (made int) {
	p.t.Helper()
	return p.makeCoordinators(func(s *corev1.PodStatus, running corev1.ContainerState) {
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "outcome", State: running}}
	})
}

// makeCoordinators makes the pods, in the state that set gives them.
func (p *place) makeCoordinators(set func(s *corev1.PodStatus, running corev1.ContainerState)) (made int) {
	p.t.Helper()
	var all batchv1.JobList
	if err := p.admin.List(p.t.Context(), &all, client.InNamespace(p.namespace), client.MatchingLabels{"app.kubernetes.io/component": "coordinator"}); err != nil {
		p.t.Fatal(err)
	}
	for i := range all.Items {
		job := &all.Items[i]
		if job.DeletionTimestamp != nil {
			continue
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: job.Name + "-0", Labels: job.Spec.Template.Labels},
			Spec:       job.Spec.Template.Spec,
		}
		err := p.admin.Create(p.t.Context(), pod)
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			p.t.Fatalf("making the pod of %s: %v", job.Name, err)
		}
		pod.Status.Phase = corev1.PodRunning
		set(&pod.Status, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		if err := p.admin.Status().Update(p.t.Context(), pod); err != nil {
			p.t.Fatal(err)
		}
		made++
	}
	return made
}

// left are the objects in the namespace that the operator made. A job that is gone takes its
// pods along, which nobody does here: they are not counted.
func (p *place) left() (names []string) {
	p.t.Helper()
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &appsv1.DeploymentList{}} {
		if err := p.admin.List(p.t.Context(), list, client.InNamespace(p.namespace), client.HasLabels{labelOwner}); err != nil {
			p.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			m := o.(client.Object)
			if m.GetDeletionTimestamp() == nil {
				names = append(names, fmt.Sprintf("%T %s", o, m.GetName()))
			}
			return nil
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return names
}

// driver takes resources on by hand, at times of its own.
type driver struct {
	*place
	r        *reconciler
	now      time.Time
	events   *events.FakeRecorder
	outcomes map[string]*parcel.Outcome // by the namespace that a run is in; none: noOutcome
}

// newDriver is the operator, with the rights that the manifests give it.
func newDriver(t *testing.T, p *place, kind string) *driver {
	t.Helper()
	p.install()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	config := p.As(account)
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	counted, err := newCounters(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{place: p, now: time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC), events: events.NewFakeRecorder(1000), outcomes: map[string]*parcel.Outcome{}}
	d.r = &reconciler{
		kind: kind, empty: kinds()[kind], cached: direct, direct: cluster{direct, config}, remote: &remotes{scheme: scheme},
		events: d.events, counted: counted, image: "registry.test/tare:1", now: func() time.Time { return d.now }, poll: time.Second,
		jobs: jobRunner{fetch: func(_ context.Context, _ *rest.Config, _ client.Client, namespace, name string) (*parcel.Outcome, error) {
			if o := d.outcomes[namespace]; o != nil {
				return o, nil
			}
			return nil, fmt.Errorf("the test has no outcome for %s in %s", name, namespace)
		}}.orReal(),
	}
	return d
}

// pass reconciles a resource once, and reads it.
func (d *driver) pass(name string) (Resource, time.Duration) {
	d.t.Helper()
	key := client.ObjectKey{Namespace: d.namespace, Name: name}
	got, err := d.r.Reconcile(d.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		d.t.Fatal(err)
	}
	res := d.r.empty()
	if err := d.admin.Get(d.t.Context(), key, res); err != nil {
		d.t.Fatal(err)
	}
	return res, got.RequeueAfter
}

// passUntil reconciles until something is so, with five seconds between the passes.
func (d *driver) passUntil(name, what string, so func(*v1alpha1.Status) bool) *v1alpha1.Status {
	d.t.Helper()
	for range 400 {
		res, _ := d.pass(name)
		if so(res.Report()) {
			return res.Report()
		}
		d.now = d.now.Add(5 * time.Second)
	}
	res, _ := d.pass(name)
	text, _ := yaml.Marshal(res.Report())
	d.t.Fatalf("never %s:\n%s", what, text)
	return nil
}

// create creates a resource.
func (d *driver) create(name, spec string) {
	d.t.Helper()
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf("apiVersion: tarehq.github.io/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: %s", d.r.kind, name, d.namespace, spec)
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		d.t.Fatal(err)
	}
	if err := d.admin.Create(d.t.Context(), u); err != nil {
		d.t.Fatal(err)
	}
}

// change changes the spec of a resource.
func (d *driver) change(name string, change func(*v1alpha1.RunSpec)) {
	d.t.Helper()
	res := d.r.empty()
	if err := d.admin.Get(d.t.Context(), client.ObjectKey{Namespace: d.namespace, Name: name}, res); err != nil {
		d.t.Fatal(err)
	}
	change(res.Plan())
	if err := d.admin.Update(d.t.Context(), res); err != nil {
		d.t.Fatal(err)
	}
}

// said are the reasons of the events so far, and forgets them.
func (d *driver) said() (all []string) {
	for {
		select {
		case e := <-d.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// loadOutcome is what tare load --json comes to, cut down to what the operator reads. The
// whole is read in package headline.
func loadOutcome(rate float64) *parcel.Outcome {
	return &parcel.Outcome{Output: fmt.Appendf(nil, `{"title":"t","thresholds":[],"schema":1,"rate":%g,"counts":{"scheduled":100,"answered":100,"status":{"2xx":100}},"response":{"count":100,"p50_ns":1200000}}`, rate)}
}

func runs(s *v1alpha1.Status) bool {
	return s.Active != nil && s.Active.Clusters[0].Phase == v1alpha1.Running
}
func rests(s *v1alpha1.Status) bool { return s.Active == nil && len(s.History) > 0 }

func conditionOf(s *v1alpha1.Status, name string) metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}
