package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/testcluster"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testClusters declares a service over two clusters by one resource. The operator, a pod of the
// first, applies it to both, has pods of each load it at the same time, and reports one status.
func testClusters(t *testing.T, l *lab) {
	west := testcluster.Start(t, testcluster.Options{Nodes: 1, Images: l.images, Beside: l.Cluster})
	if err := west.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(west.Kubeconfig("", "default"))
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "west"}, Data: map[string][]byte{"kubeconfig": config}}
	if err := l.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o := l.install(t)
	test := new(v1alpha1.LoadTest)
	text := strings.Replace(declaredLoad, "name: declared", "name: everywhere", 1)
	o.create(t, strings.Replace(text, "spec: {", "spec: {clusters: [{name: east}, {name: west, kubeconfigSecret: {name: west}, namespace: shop}],", 1), test)
	run := o.finished(t, test, &test.Status, 1)
	t.Logf("both: %s: %s", run.Phase, test.Status.Verdict)
	for _, want := range []string{"east: ", "west: "} {
		if !strings.Contains(test.Status.Verdict, want) || strings.Contains(test.Status.Verdict, "\n") {
			t.Errorf("got the verdict %q, want %q in it and one line", test.Status.Verdict, want)
		}
	}
	if len(run.Clusters) != 2 {
		t.Fatalf("got %+v, want two clusters", run.Clusters)
	}
	for i, in := range []client.Client{o.client, west.Client} {
		c := run.Clusters[i]
		// Inconclusive is what a machine makes of it that is too busy to be on time.
		if c.Phase != v1alpha1.Succeeded && c.Phase != v1alpha1.Inconclusive || !strings.Contains(c.Verdict, "/s, p50 ") || !c.Removed {
			t.Errorf("got %+v, want a verdict and nothing left", c)
		}
		o.checkAnswers(t, c.Result, 800)
		err := in.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "own"}, new(appsv1.Deployment))
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s: reading the service's Deployment after the run: got %v, want that it is gone", c.Name, err)
		}
	}
	var left batchv1.JobList
	if err := west.Client.List(t.Context(), &left, client.InNamespace(shop), client.MatchingLabels{"app.kubernetes.io/name": "tare"}); err != nil || len(left.Items) > 0 {
		t.Errorf("%d jobs are left in the second cluster, %v", len(left.Items), err)
	}
	o.remove(test, secret)
}

// checkAnswers wants a result to be kept that has so many answers to two agents.
func (o *operated) checkAnswers(t *testing.T, name string, answers int) {
	t.Helper()
	kept := new(corev1.ConfigMap)
	if err := o.client.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: name}, kept); err != nil {
		t.Fatal("the result:", err)
	}
	var result struct {
		Counts struct{ Answered int }
		Fleet  struct{ Agents []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(kept.Data["result.json"]), &result); err != nil || result.Counts.Answered != answers || len(result.Fleet.Agents) != 2 {
		t.Errorf("got %+v, %v; want %d answers to two agents", result, err, answers)
	}
}
