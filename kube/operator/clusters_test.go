package operator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// shop is a service as a specimen: a Deployment and a Service.
const shop = `{readyWithin: 5m, manifests: [
  {apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, spec: {replicas: 2, selector: {matchLabels: {app: shop}},
    template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: shop, image: shop:1}]}}}},
  {apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {selector: {app: shop}, ports: [{port: 8080}]}}]}`

// TestServiceOverClusters declares a service over three clusters by one resource. The operator
// applies it to the two that can be reached, each a real API server, runs there, removes it
// again, and reports one status that names the third.
func TestServiceOverClusters(t *testing.T) {
	d, west := newDriver(t, newPlace(t), "LoadTest"), newPlace(t)
	west.grant()
	d.secret("west", west.kubeconfig())
	d.secret("north", strings.ReplaceAll(west.kubeconfig(), west.Config.Host, "https://127.0.0.1:1")) // nobody listens there
	d.outcomes[d.namespace], d.outcomes[west.namespace] = loadOutcome(1000), loadOutcome(2000)
	d.create("shop", `{url: "http://shop:8080/", rate: "1000", agents: 2, specimen: `+shop+`, clusters: [
	  {name: east}, {name: west, kubeconfigSecret: {name: west}, namespace: `+west.namespace+`}, {name: north, kubeconfigSecret: {name: north}}]}`)

	part := func(s *v1alpha1.Status, i int) *v1alpha1.ClusterRun { return &s.Active.Clusters[i] }
	s := d.passUntil("shop", "applied in two clusters", func(s *v1alpha1.Status) bool {
		return s.Active != nil && part(s, 0).Phase == v1alpha1.Preparing && part(s, 1).Phase == v1alpha1.Preparing
	})
	if c := conditionOf(s, v1alpha1.Reachable); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "north: ") || strings.Contains(c.Message, "west: ") {
		t.Errorf("got the condition %+v, want it to name north alone", c)
	}
	for _, p := range []*place{d.place, west} {
		checkSpecimen(t, p, p == d.place)
		p.playDeployments()
	}
	d.passUntil("shop", "running in two clusters", func(s *v1alpha1.Status) bool {
		return part(s, 0).Phase == v1alpha1.Running && part(s, 1).Phase == v1alpha1.Running
	})
	for _, p := range []*place{d.place, west} {
		if n := p.playCoordinators(); n != 1 {
			t.Errorf("%d coordinators in %s, want 1", n, p.namespace)
		}
	}
	s = d.passUntil("shop", "at rest", rests)
	checkMerged(t, s)
	for _, p := range []*place{d.place, west} {
		if left := p.left(); len(left) > 0 {
			t.Errorf("left in %s: %q", p.namespace, left)
		}
	}
	var results corev1.ConfigMapList
	if err := d.admin.List(t.Context(), &results, client.InNamespace(d.namespace), client.HasLabels{labelOwner}); err != nil || len(results.Items) != 2 {
		t.Errorf("%d results are kept, %v, want 2", len(results.Items), err)
	}
	for _, r := range results.Items {
		if !strings.Contains(r.Data["result.json"], `"rate":`) || len(r.OwnerReferences) != 1 {
			t.Errorf("got the result %+v, want tare's JSON, owned by the resource", r)
		}
	}
}

func checkSpecimen(t *testing.T, p *place, owned bool) {
	t.Helper()
	var deployment appsv1.Deployment
	var service corev1.Service
	key := client.ObjectKey{Namespace: p.namespace, Name: "shop"}
	if err := p.admin.Get(t.Context(), key, &deployment); err != nil {
		t.Fatal(err)
	}
	if err := p.admin.Get(t.Context(), key, &service); err != nil {
		t.Fatal(err)
	}
	if owners := len(deployment.OwnerReferences) + len(service.OwnerReferences); owners != map[bool]int{true: 2}[owned] {
		t.Errorf("the specimen in %s has %d owners; owned by a resource of its cluster: %t", p.namespace, owners, owned)
	}
	if !slices.ContainsFunc(deployment.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == string(fieldOwner) && f.Operation == metav1.ManagedFieldsOperationApply
	}) {
		t.Errorf("the deployment in %s was not applied by the server: %+v", p.namespace, deployment.ManagedFields)
	}
	var all batchv1.JobList
	if err := p.admin.List(t.Context(), &all, client.InNamespace(p.namespace)); err != nil || len(all.Items) > 0 {
		t.Errorf("%d jobs in %s, %v, want none before the specimen is ready", len(all.Items), p.namespace, err)
	}
}

func checkMerged(t *testing.T, s *v1alpha1.Status) {
	t.Helper()
	run := s.History[0]
	want := []struct {
		phase   v1alpha1.Phase
		verdict string
	}{{v1alpha1.Succeeded, "1,000/s, p50 1.20 ms"}, {v1alpha1.Succeeded, "2,000/s, p50 1.20 ms"}, {v1alpha1.Unreachable, ""}}
	for i, w := range want {
		if c := run.Clusters[i]; c.Phase != w.phase || !strings.HasPrefix(c.Verdict, w.verdict) || !c.Removed {
			t.Errorf("cluster %s: got %+v, want phase %s and verdict %q", c.Name, c, w.phase, w.verdict)
		}
	}
	if run.Phase != v1alpha1.Partial || s.Verdict != run.Verdict || strings.Contains(s.Verdict, "\n") {
		t.Errorf("got phase %s and verdict %q, want Partial and one line", run.Phase, s.Verdict)
	}
	for _, text := range []string{"2 of 3 clusters succeeded; east: 1,000/s", "; west: 2,000/s", "; north: not reached: "} {
		if !strings.Contains(s.Verdict, text) {
			t.Errorf("got the verdict %q, want %q in it", s.Verdict, text)
		}
	}
	if c := conditionOf(s, v1alpha1.Success); c.Status != metav1.ConditionFalse || c.Reason != "Partial" {
		t.Errorf("got the condition %+v, want it to say that a part succeeded", c)
	}
}

// TestRefusals shares two clusters among what goes wrong in them.
func TestRefusals(t *testing.T) {
	own, west := newPlace(t), newPlace(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *place, *place)
	}{{"rights", testMissingRights}, {"lost", testLostCluster}, {"secret", testSecretRemoved}, {"specimen", testSpecimenRefused}, {"not ready", testSpecimenNotReady}} {
		t.Run(test.name, func(t *testing.T) { test.run(t, own.another(t), west.another(t)) })
	}
}

// testMissingRights has a namespace in which the operator may do nothing.
func testMissingRights(t *testing.T, own, west *place) {
	d := newDriver(t, own, "Study")
	d.secret("west", west.kubeconfig())
	d.create("nesting", `{study: nesting, clusters: [{name: west, kubeconfigSecret: {name: west}, namespace: `+west.namespace+`}]}`)
	s := d.passUntil("nesting", "told what is missing", func(s *v1alpha1.Status) bool {
		return conditionOf(s, v1alpha1.Allowed).Status == metav1.ConditionFalse
	})
	c := conditionOf(s, v1alpha1.Allowed)
	for _, want := range []string{"west: ", "in namespace " + west.namespace + " the operator may not ", "create jobs", "create secrets", "create pods/portforward"} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("got the condition %+v, want %q in it", c, want)
		}
	}
	if said := strings.Join(d.said(), "\n"); strings.Count(said, "Warning MissingRights") != 1 {
		t.Errorf("the events are\n%s\nwant one for the rights", said)
	}
	west.grant() // and the run goes on
	s = d.passUntil("nesting", "running", runs)
	if c := conditionOf(s, v1alpha1.Allowed); c.Status != metav1.ConditionTrue {
		t.Errorf("got the condition %+v, want it true again", c)
	}

	d.create("second", `{study: nesting, clusters: [{name: west, kubeconfigSecret: {name: west}, namespace: default}]}`)
	s = d.passUntil("second", "given up", rests)
	if run := s.History[0]; run.Phase != v1alpha1.Failed || run.Clusters[0].Reason != reasonRights || d.now.Sub(run.Started.Time) < patience {
		t.Errorf("got %+v, want it failed for its rights after %v", run, patience)
	}
}

// testLostCluster loses a cluster amid a run. The run ends there when it is back.
func testLostCluster(t *testing.T, own, west *place) {
	d := newDriver(t, own, "LoadTest")
	west.grant()
	d.secret("west", west.kubeconfig())
	d.outcomes[west.namespace] = loadOutcome(500)
	d.create("shop", `{url: "http://shop:8080/", clusters: [{name: west, kubeconfigSecret: {name: west}, namespace: `+west.namespace+`}]}`)
	d.passUntil("shop", "running", runs)
	west.Pause()
	s := d.passUntil("shop", "told", func(s *v1alpha1.Status) bool {
		return conditionOf(s, v1alpha1.Reachable).Status == metav1.ConditionFalse
	})
	if c := s.Active.Clusters[0]; c.Phase != v1alpha1.Running {
		t.Errorf("got %+v, want it to run on: tare may be at it", c)
	}
	west.Resume()
	west.playCoordinators()
	s = d.passUntil("shop", "at rest", rests)
	if run := s.History[0]; run.Phase != v1alpha1.Succeeded || !strings.HasPrefix(s.Verdict, "500/s") {
		t.Errorf("got %+v, want it to have succeeded", run)
	}
	if c := conditionOf(s, v1alpha1.Reachable); c.Status != metav1.ConditionTrue {
		t.Errorf("got the condition %+v, want it true again", c)
	}
}

// testSecretRemoved takes the kubeconfig away amid a run. The run ends once it is there again, as
// where it is replaced. A resource that is deleted meanwhile does not wait for ever, and says what
// it left.
func testSecretRemoved(t *testing.T, own, west *place) {
	d := newDriver(t, own, "LoadTest")
	west.grant()
	d.outcomes[west.namespace] = loadOutcome(500)
	create := func(name string) {
		d.create(name, `{url: "http://shop:8080/", clusters: [{name: west, kubeconfigSecret: {name: west}, namespace: `+west.namespace+`}]}`)
	}
	remove := func() {
		t.Helper()
		if err := d.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "west"}}); err != nil {
			t.Fatal(err)
		}
	}
	told := func(s *v1alpha1.Status) bool {
		c := conditionOf(s, v1alpha1.Reachable)
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "west: the cluster's kubeconfig is missing: there is no Secret west")
	}
	create("early") // before there is a Secret
	d.passUntil("early", "told", told)
	d.secret("west", west.kubeconfig())
	d.passUntil("early", "running", runs)
	remove()
	if s := d.passUntil("early", "told amid the run", told); s.Active.Clusters[0].Phase != v1alpha1.Running {
		t.Errorf("got %+v, want it to run on: tare may be at it", s.Active.Clusters[0])
	}
	d.secret("west", west.kubeconfig())
	west.playCoordinators()
	if s := d.passUntil("early", "at rest", rests); s.History[0].Phase != v1alpha1.Succeeded || !strings.HasPrefix(s.Verdict, "500/s") {
		t.Errorf("got %+v, want it to have succeeded", s.History[0])
	}

	create("gone")
	d.passUntil("gone", "running", runs)
	remove()
	key := client.ObjectKey{Namespace: d.namespace, Name: "gone"}
	d.said()
	if err := d.admin.Delete(t.Context(), &v1alpha1.LoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "gone"}}); err != nil {
		t.Fatal(err)
	}
	const most = 5 * time.Minute
	begun := d.now
	for ; d.now.Sub(begun) < most; d.now = d.now.Add(5 * time.Second) {
		if _, err := d.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if apierrors.IsNotFound(d.admin.Get(t.Context(), key, &v1alpha1.LoadTest{})) {
			break
		}
	}
	if waited := d.now.Sub(begun); waited >= most {
		t.Errorf("deleted %v ago, and it is there still", waited)
	}
	if said := strings.Join(d.said(), "\n"); !strings.Contains(said, "LeftBehind") {
		t.Errorf("the events are\n%s\nwant one for what is left in the cluster", said)
	}
}

// testSpecimenRefused has manifests that the operator must not apply. What others own stays.
func testSpecimenRefused(t *testing.T, own, _ *place) {
	d := newDriver(t, own, "Study")
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	if err := d.admin.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ manifest, want string }{
		"taken":  {"{apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {ports: [{port: 2}]}}", "is not of this resource"},
		"wide":   {"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}}", "of the whole cluster"},
		"away":   {"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: kube-system}}", "its namespace is kube-system"},
		"rights": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: all}, rules: []}", "forbidden"},
		"none":   {"{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}}", "no matches for kind"},
	} {
		d.create(name, "{study: nesting, specimen: {manifests: ["+tt.manifest+"]}}")
		s := d.passUntil(name, "refused", rests)
		if run := s.History[0]; run.Phase != v1alpha1.Failed || !strings.Contains(s.Verdict, tt.want) {
			t.Errorf("%s: got %s, %q, want it failed with %q", name, run.Phase, s.Verdict, tt.want)
		}
	}
	if err := d.admin.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.Spec.Ports[0].Port != 1 {
		t.Errorf("the service of others is %+v, %v, want it as it was", theirs.Spec, err)
	}
}

// testSpecimenNotReady gives a specimen up that does not get ready.
func testSpecimenNotReady(t *testing.T, own, _ *place) {
	d := newDriver(t, own, "Study")
	d.create("slow", "{study: nesting, specimen: "+shop+"}")
	s := d.passUntil("slow", "given up", rests)
	if run := s.History[0]; run.Phase != v1alpha1.Failed || !strings.Contains(s.Verdict, "after 5m0s: Deployment shop has 0 of 2 ready") || d.now.Sub(run.Started.Time) < 5*time.Minute {
		t.Errorf("got %+v, want it failed after five minutes", run)
	}
	if left := d.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
