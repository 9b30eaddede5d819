package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// testWatch runs tare watch on every node by its manifest, with the capabilities and the
// seccomp profile that it has there. It finds a pod under load by the names that the kubelet
// left in the node's files.
//
// The nodes are in a PID namespace of their own, from which the kernel's program sees no
// process of a further one. So the pod shares the node's, as the watching one does.
func testWatch(t *testing.T, l *lab) {
	if out, err := exec.Command(l.tare, "watch", "--all-go", "--for", "1s").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: tare watch on nodes: no sampling on this machine: %v: %s", err, out)
	}
	for _, dir := range []string{"/var/log/pods", "/var/log/containers"} { // of the nodes, which have them elsewhere
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web-0"}, Spec: corev1.PodSpec{HostPID: true, Containers: []corev1.Container{{
		Name: "server", Image: image, Command: []string{"/usr/bin/nethttp", "--routes", "ping"}, Env: []corev1.EnvVar{{Name: "TARE_ADDR", Value: "0.0.0.0:80"}},
	}}}}
	if err := l.Client.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	set := l.applyWatch(t)
	t.Cleanup(func() { // not with the test's context, which is over
		_ = l.Client.Delete(context.Background(), own) // the cluster goes in the end
		_ = l.Client.Delete(context.Background(), set)
	})
	var pods corev1.PodList
	l.Await("tare watch on two nodes", 2*time.Minute, func(ctx context.Context) error {
		if err := l.Client.List(ctx, &pods, client.InNamespace(set.Namespace)); err != nil {
			return err
		}
		ready := map[string]bool{}
		for i := range pods.Items {
			for _, c := range pods.Items[i].Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready[pods.Items[i].Spec.NodeName] = true
				}
			}
		}
		if len(ready) < 2 {
			return fmt.Errorf("%d nodes have a pod that is ready: %+v", len(ready), pods.Items)
		}
		return nil
	})
	cpu := regexp.MustCompile(`tare_service_cpu_seconds_total\{service="shop/web/server"\} (0\.0*[1-9]|[1-9])`)
	l.Await("the service's CPU", time.Minute, func(ctx context.Context) error {
		if err := l.Client.Get(ctx, client.ObjectKeyFromObject(own), own); err != nil {
			return err
		}
		for range 500 {
			if _, err := ask(ctx, "http://"+net.JoinHostPort(own.Status.PodIP, "80")+"/ping"); err != nil {
				return err
			}
		}
		text, err := ask(ctx, "http://"+net.JoinHostPort(pods.Items[0].Status.PodIP, "9464")+"/metrics")
		if err == nil && !cpu.MatchString(text) {
			err = fmt.Errorf("%s has none of it:\n%s", pods.Items[0].Name, text)
		}
		if err == nil && !strings.Contains(text, `pod="shop/web-0"`) {
			err = fmt.Errorf("%s does not name the pod:\n%s", pods.Items[0].Name, text)
		}
		return err
	})
}

// applyWatch applies the manifest of tare watch with this lab's image, and short intervals.
func (l *lab) applyWatch(t *testing.T) *appsv1.DaemonSet {
	t.Helper()
	text, err := os.ReadFile("../../../templates/watch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := new(appsv1.DaemonSet)
	manifests := strings.NewReplacer("ghcr.io/tarehq/tare:latest", image, "[watch, --k8s,", "[watch, --every, 2s, --k8s,").Replace(string(text))
	for one := range strings.SplitSeq(manifests, "\n---\n") {
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal([]byte(one), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetKind() == "DaemonSet" {
			set.Namespace, set.Name = u.GetNamespace(), u.GetName()
		}
		if err := l.Client.Create(t.Context(), u); err != nil {
			t.Fatalf("creating %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	return set
}

// ask returns what a server answers.
func ask(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %s", address, res.Status)
	}
	return string(text), err
}
