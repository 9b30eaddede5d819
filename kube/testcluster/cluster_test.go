package testcluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/testcluster"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestControlPlane has a Job get its pod from the controllers, which no node runs, and a user
// without rights be refused.
func TestControlPlane(t *testing.T) {
	c := testcluster.Start(t, testcluster.Options{})
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "try", Namespace: "default"}}
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "none"}}}
	c.Await("the default namespace", 30*time.Second, func(ctx context.Context) error { return c.Client.Create(ctx, job) })
	pods := new(corev1.PodList)
	c.Await("the Job's pod", 30*time.Second, func(ctx context.Context) error {
		if err := c.Client.List(ctx, pods, client.MatchingLabels{"job-name": "try"}); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return nil
	})
	nobody, err := client.New(c.As("nobody"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := nobody.List(t.Context(), pods, client.InNamespace("default")); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights got %v, want a refusal", err)
	}
}

// TestBare pauses an API server that has what was written before, and nobody who acts on it.
func TestBare(t *testing.T) {
	c := testcluster.Start(t, testcluster.Options{Bare: true})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if err := c.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	c.Pause()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err == nil {
		t.Error("a paused server answers")
	}
	c.Resume()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
		t.Error("resumed:", err)
	}
}
