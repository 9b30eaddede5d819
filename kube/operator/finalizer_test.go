package operator

import (
	"context"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/jobs"
	"github.com/tarehq/tare/kube/parcel"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestFinalizer has a resource keep its finalizer for as long as there may be something of a run.
// One at rest goes with whoever deletes it: the operator may have been removed before.
func TestFinalizer(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	counted, err := newCounters(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "u", Generation: 1}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.LoadTest{}).
		WithObjects(&v1alpha1.LoadTest{ObjectMeta: meta, Spec: v1alpha1.LoadTestSpec{URL: "http://shop/"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
					review.Status.Allowed = true
					return nil
				}
				return c.Create(ctx, o, opts...)
			},
		}).Build()
	now, phase, began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), jobs.Running, 0
	key := client.ObjectKeyFromObject(&v1alpha1.LoadTest{ObjectMeta: meta})
	read := func() (*v1alpha1.LoadTest, bool) {
		t.Helper()
		got := &v1alpha1.LoadTest{}
		err := c.Get(t.Context(), key, got)
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return got, controllerutil.ContainsFinalizer(got, finalizer)
	}
	r := &reconciler{
		kind: "LoadTest", empty: kinds()["LoadTest"], cached: c, direct: cluster{c, nil}, events: events.NewFakeRecorder(100), counted: counted,
		image: "tare:1", now: func() time.Time { return now }, poll: time.Second,
		jobs: jobRunner{
			start: func(context.Context, client.Client, jobs.Spec) error {
				began++
				if _, kept := read(); !kept {
					t.Error("pods are made of a resource without the finalizer")
				}
				return nil
			},
			look: func(context.Context, client.Client, string, string) (jobs.State, error) {
				return jobs.State{Phase: phase}, nil
			},
			fetch: func(context.Context, *rest.Config, client.Client, string, string) (*parcel.Outcome, error) {
				return loadOutcome(500), nil
			},
			remove: func(context.Context, client.Client, string, string) error { return nil },
		},
	}
	passUntil := func(what string, so func(*v1alpha1.LoadTest) bool) {
		t.Helper()
		for range 20 {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if got, _ := read(); so(got) {
				return
			}
			now = now.Add(5 * time.Second)
		}
		got, _ := read()
		t.Fatalf("never %s: %+v", what, got.Status)
	}
	running := func(l *v1alpha1.LoadTest) bool { return runs(&l.Status) }
	gone := func(l *v1alpha1.LoadTest) bool { return l.Name == "" }

	passUntil("running", running)
	phase = jobs.Done
	passUntil("at rest", func(l *v1alpha1.LoadTest) bool { return rests(&l.Status) })
	if got, kept := read(); kept || got.Status.History[0].Phase != v1alpha1.Succeeded {
		t.Errorf("got %+v, kept by the finalizer: %t; want it at rest without", got.Status.History, kept)
	}

	phase = jobs.Running
	again, _ := read()
	again.Generation, again.Spec.Rate = 2, "100"
	if err := c.Update(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	passUntil("running again", running)
	if err := c.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if got, kept := read(); gone(got) || !kept {
		t.Fatal("a resource whose run goes on is gone before that was removed")
	}
	passUntil("gone", gone)
	if began != 2 {
		t.Errorf("pods were made %d times, want twice", began)
	}
}
