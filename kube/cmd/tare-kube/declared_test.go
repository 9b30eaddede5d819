package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	neturl "net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/chart"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// declaredLoad is a service of its own, and a load of it by two pods.
const declaredLoad = `{apiVersion: tarehq.github.io/v1alpha1, kind: LoadTest, metadata: {name: declared, namespace: shop}, spec: {
  url: "http://own.shop/ping", rate: "100", duration: 8s, agents: 2, resources: {cpu: 250m, memory: 128Mi}, deadline: 5m,
  specimen: {manifests: [
    {apiVersion: apps/v1, kind: Deployment, metadata: {name: own}, spec: {replicas: 2, selector: {matchLabels: {app: own}},
      template: {metadata: {labels: {app: own}}, spec: {containers: [{name: own, image: "testcluster.local/tare:1",
        command: [/usr/bin/nethttp, --routes, ping], env: [{name: TARE_ADDR, value: "0.0.0.0:80"}]}]}}}},
    {apiVersion: v1, kind: Service, metadata: {name: own}, spec: {clusterIP: None, selector: {app: own}}}]}}}`

// declaredStudy has no study yet.
const declaredStudy = `{apiVersion: tarehq.github.io/v1alpha1, kind: Study, metadata: {name: mine, namespace: shop}, spec: {
  quick: true, agents: 2, resources: {cpu: 250m, memory: 128Mi}, deadline: 5m}}`

// operated is a cluster in which the operator runs.
type operated struct {
	*lab
	client client.Client // which knows the resources
}

// testOperator installs the operator by its manifests: it runs as a pod with an account of its
// own, and has no more rights than they give. It is killed amid a load, and the next one goes
// on. A changed resource is run again, and a study has its verdict.
func testOperator(t *testing.T, l *lab) {
	o := l.install(t)
	test := new(v1alpha1.LoadTest)
	o.create(t, declaredLoad, test)
	o.Await("a load", 2*time.Minute, func(ctx context.Context) error {
		if err := o.read(ctx, test); err != nil {
			return err
		}
		if a := test.Status.Active; a == nil || a.Clusters[0].Phase != v1alpha1.Running {
			return fmt.Errorf("its status is %+v", test.Status)
		}
		return nil
	})
	name := test.Status.Active.Name
	o.kill(t)
	first := o.finished(t, test, &test.Status, 1)
	if first.Name != name {
		t.Errorf("the run %s ended, want %s, which the killed operator had begun", first.Name, name)
	}
	o.checkLoad(t, &test.Status, 800)

	o.Await("a change of the resource", time.Minute, func(ctx context.Context) error {
		if err := o.read(ctx, test); err != nil {
			return err
		}
		test.Spec.Duration = "2s"
		return o.client.Update(ctx, test)
	})
	if second := o.finished(t, test, &test.Status, 2); second.Name == name || test.Status.History[1].Name != name {
		t.Errorf("got the runs %+v, want another one before %s", test.Status.History, name)
	}
	o.checkLoad(t, &test.Status, 200)

	study := new(v1alpha1.Study)
	study.Spec.StudyFile = mine
	o.create(t, declaredStudy, study)
	run := o.finished(t, study, &study.Status, 1)
	t.Logf("study: %s: %s", run.Phase, study.Status.Verdict)
	// On a machine that is too busy no trial may count, which is a result, too.
	if c := run.Clusters[0]; study.Status.Verdict == "" || c.Result == "" || !c.Removed || run.Phase == v1alpha1.Failed && !strings.Contains(c.Message, "no trial counts") {
		t.Errorf("got the status %+v, want a verdict and nothing left", study.Status)
	}
	o.remove(test, study)
}

// install applies the operator's manifests, and waits until its pod runs.
func (l *lab) install(t *testing.T) *operated {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	made, err := client.New(l.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	o := &operated{lab: l, client: made}
	manifests := chart.Manifests(image)
	for text := range strings.SplitSeq(manifests, "\n---\n") {
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetKind() == "Deployment" {
			o.reach(t, u)
		}
		if err := o.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			t.Fatalf("applying %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	t.Cleanup(func() { // not with the test's context, which is over
		_ = o.client.Delete(context.Background(), &appsv1.Deployment{ObjectMeta: metaOf(operatorKey)}) // the cluster goes in the end
	})
	o.awaitOperator("")
	return o
}

// reach gives the operator's pod by hand what it has elsewhere: an account's token, which an
// admission adds that is not on here, and an address of the API server. A service's needs a
// proxy on each node.
func (o *operated) reach(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	at, err := neturl.Parse(o.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(at.Host)
	if err != nil {
		t.Fatal(err)
	}
	d := new(appsv1.Deployment)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
		t.Fatal(err)
	}
	pod := &d.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "account", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
	}}}})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "account", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true})
	c.Env = append(c.Env, corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: host}, corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: port})
	if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(d); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
}

func metaOf(k client.ObjectKey) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}
}

var operatorKey = client.ObjectKey{Namespace: "tare-system", Name: "tare-operator"}

// awaitOperator waits until a pod of the operator is ready that is not the one before, and
// returns its name.
func (o *operated) awaitOperator(before string) (name string) {
	o.Await("the operator", 2*time.Minute, func(ctx context.Context) error {
		pods := new(corev1.PodList)
		if err := o.client.List(ctx, pods, client.InNamespace(operatorKey.Namespace)); err != nil {
			return err
		}
		for _, p := range pods.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil && p.Name != before {
					name = p.Name
					return nil
				}
			}
		}
		return fmt.Errorf("of %d pods none is ready and new", len(pods.Items))
	})
	return name
}

// kill ends the operator's pod without a grace; its Deployment makes another.
func (o *operated) kill(t *testing.T) {
	t.Helper()
	name := o.awaitOperator("")
	pod := &corev1.Pod{ObjectMeta: metaOf(client.ObjectKey{Namespace: operatorKey.Namespace, Name: name})}
	if err := o.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	t.Logf("killed %s; %s took its place", name, o.awaitOperator(name))
}

// create creates a resource by its text. What r has beyond that stays.
func (o *operated) create(t *testing.T, text string, r client.Object) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	// A definition that was just applied may not be served yet.
	o.Await("the kind "+r.GetObjectKind().GroupVersionKind().Kind, time.Minute, func(ctx context.Context) error { return o.client.Create(ctx, r) })
}

// read reads a resource anew: a field that it has no longer would stay.
func (o *operated) read(ctx context.Context, r client.Object) error {
	now := reflect.New(reflect.TypeOf(r).Elem())
	if err := o.client.Get(ctx, client.ObjectKeyFromObject(r), now.Interface().(client.Object)); err != nil {
		return err
	}
	reflect.ValueOf(r).Elem().Set(now.Elem())
	return nil
}

// finished waits until a resource has so many finished runs and none that goes on, and returns
// the last. status is r's.
func (o *operated) finished(t *testing.T, r client.Object, status *v1alpha1.Status, runs int) *v1alpha1.Run {
	t.Helper()
	o.Await("the verdict on "+r.GetName(), 5*time.Minute, func(ctx context.Context) error {
		if err := o.read(ctx, r); err != nil {
			return err
		}
		if len(status.History) != runs || status.Active != nil {
			return fmt.Errorf("its status is %+v", status)
		}
		return nil
	})
	return &status.History[0]
}

// checkLoad wants a load's last run to have a verdict, all answers in its result, and nothing
// left of its service.
func (o *operated) checkLoad(t *testing.T, s *v1alpha1.Status, answers int) {
	t.Helper()
	t.Logf("load: %s: %s", s.History[0].Phase, s.Verdict)
	run, c := s.History[0], s.History[0].Clusters[0]
	// Inconclusive is what a machine makes of it that is too busy to be on time.
	if run.Phase != v1alpha1.Succeeded && run.Phase != v1alpha1.Inconclusive || !strings.Contains(s.Verdict, "/s, p50 ") || !c.Removed {
		t.Errorf("got the status %+v, want a verdict and nothing left", s)
	}
	o.checkAnswers(t, c.Result, answers)
	err := o.client.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "own"}, new(appsv1.Deployment))
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading the service's Deployment after the run: got %v, want that it is gone", err)
	}
}

// remove deletes resources, and waits until they are gone, and their results with them.
func (o *operated) remove(all ...client.Object) {
	o.Await("the end of the resources", 2*time.Minute, func(ctx context.Context) error {
		for _, r := range all {
			if err := client.IgnoreNotFound(o.client.Delete(ctx, r)); err != nil {
				return err
			}
			if err := o.client.Get(ctx, client.ObjectKeyFromObject(r), r); !apierrors.IsNotFound(err) {
				return fmt.Errorf("reading %s: %w", r.GetName(), err)
			}
		}
		results := new(corev1.ConfigMapList)
		if err := o.client.List(ctx, results, client.InNamespace(shop), client.HasLabels{v1alpha1.Group + "/owner"}); err != nil {
			return err
		}
		if len(results.Items) > 0 {
			return fmt.Errorf("%d results are left", len(results.Items))
		}
		return nil
	})
}
