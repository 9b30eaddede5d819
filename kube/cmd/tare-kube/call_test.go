package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarehq/tare/kube/jobs"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// callerAway is one whose API server does not answer for a while. The outcome of its run is there.
func callerAway(away time.Duration) *caller {
	labels := map[string]string{"app.kubernetes.io/instance": "try", "app.kubernetes.io/component": "coordinator"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "try-0", Labels: labels}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "outcome", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "try"}}
	end := time.Now().Add(away)
	answer := func() error {
		if time.Now().Before(end) {
			return errors.New("no answer")
		}
		return nil
	}
	c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(job, pod).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return cmp.Or(answer(), c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return cmp.Or(answer(), c.List(ctx, l, opts...))
		},
	})
	return &caller{stderr: io.Discard, said: map[string]bool{}, client: c, spec: jobs.Spec{Name: "try", Namespace: "ns", Args: []string{"load"}}}
}

// TestServerAway has the API server be away amid a run, which does not need it, and when the
// outcome is to be fetched.
func TestServerAway(t *testing.T) {
	for what, do := range map[string]func(*caller, context.Context) error{
		"wait":  (*caller).wait,
		"fetch": func(c *caller, ctx context.Context) error { _, err := c.fetch(ctx); return err },
	} {
		for _, away := range []time.Duration{time.Minute, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := do(callerAway(away), t.Context())
				// Nobody plays the Secret and the port, so that no outcome is fetched.
				want, least := "no answer", patience
				switch {
				case away < patience && what == "wait":
					want, least = "", away
				case away < patience:
					want = `secrets "try" not found`
				}
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s, away for %v: got %v, want %q", what, away, err, want)
				}
				if took := time.Since(begun); took < least || took > least+10*time.Second {
					t.Errorf("%s, away for %v: took %v, want some %v", what, away, took, least)
				}
			})
		}
	}
}
