package chart_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/kube/chart"
	"github.com/tarehq/tare/kube/jobs"
	"github.com/tarehq/tare/kube/testcluster"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write install.yaml")

// namespace is that of install.yaml. Its pods must be of the strictest kind.
const namespace = `apiVersion: v1
kind: Namespace
metadata:
  name: tare-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
`

// render has Helm's engine make the chart's manifests, as documents of YAML in order of their
// files.
func render(t *testing.T, values map[string]any) (documents []string) {
	t.Helper()
	c, err := loader.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "tare-operator", Namespace: "tare-system", IsInstall: true, Revision: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for name := range files {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { // the service account before what uses it
		return cmp.Or(cmp.Compare(path.Base(b), path.Base(a)), cmp.Compare(a, b))
	})
	for _, name := range names {
		for text := range strings.SplitSeq(files[name], "\n---\n") {
			if text = strings.TrimSpace(text); text != "" {
				documents = append(documents, text+"\n")
			}
		}
	}
	return documents
}

// TestInstall wants install.yaml to be what the chart makes: go test ./chart -update
func TestInstall(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Made from the chart in this folder: go -C kube test ./chart -update\n" + namespace)
	for _, text := range render(t, nil) {
		b.WriteString("---\n" + text)
	}
	if *update {
		if err := os.WriteFile("install.yaml", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !strings.HasSuffix(chart.Manifests(""), "\n---\n"+b.String()) {
		t.Error("install.yaml is not what the chart makes: go -C kube test ./chart -update")
	}
}

// decode finds the documents of a kind.
func decode[T any](t *testing.T, documents []string, kind string) (all []T) {
	t.Helper()
	for _, text := range documents {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if head.Kind != kind {
			continue
		}
		var v T
		if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, v)
	}
	return all
}

// TestRights wants the operator to have all rights that jobs take, and lists what it has
// besides: what grows, grows here.
func TestRights(t *testing.T) {
	roles := decode[rbacv1.ClusterRole](t, render(t, nil), "ClusterRole")
	if len(roles) != 1 {
		t.Fatalf("%d cluster roles, want 1", len(roles))
	}
	has := rights(roles[0].Rules)
	for _, need := range rights(jobs.Rights()) {
		if !slices.Contains(has, need) {
			t.Errorf("the operator may not %s, which jobs take", need)
		}
	}
	want := []string{
		"create configmaps", "create deployments.apps", "create events.events.k8s.io", "create jobs.batch", "create pods/portforward", "create secrets", "create services", "create statefulsets.apps",
		"delete configmaps", "delete deployments.apps", "delete jobs.batch", "delete secrets", "delete services", "delete statefulsets.apps",
		"get configmaps", "get deployments.apps", "get jobs.batch", "get loadtests.tarehq.github.io", "get secrets", "get services", "get statefulsets.apps", "get studies.tarehq.github.io",
		"list loadtests.tarehq.github.io", "list pods", "list studies.tarehq.github.io",
		"patch configmaps", "patch deployments.apps", "patch events.events.k8s.io", "patch loadtests.tarehq.github.io", "patch services", "patch statefulsets.apps", "patch studies.tarehq.github.io",
		"update loadtests/status.tarehq.github.io", "update studies/status.tarehq.github.io",
		"watch loadtests.tarehq.github.io", "watch studies.tarehq.github.io",
	}
	if !slices.Equal(has, want) {
		t.Errorf("the operator's rights are\n%q\nwant\n%q", has, want)
	}
}

// rights are rules as sorted lines, each once.
func rights(rules []rbacv1.PolicyRule) (all []string) {
	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					all = append(all, verb+" "+strings.TrimSuffix(resource+"."+group, "."))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestNamespaces wants a role in each namespace, and none of the whole cluster.
func TestNamespaces(t *testing.T) {
	documents := render(t, map[string]any{"namespaces": []any{"a", "b"}, "replicas": 2, "imagePullSecrets": []any{map[string]any{"name": "pull"}}, "nodeSelector": map[string]any{"k": "v"}})
	if n := len(decode[rbacv1.ClusterRole](t, documents, "ClusterRole")) + len(decode[rbacv1.ClusterRoleBinding](t, documents, "ClusterRoleBinding")); n > 0 {
		t.Errorf("%d objects give rights in the whole cluster", n)
	}
	whole := decode[rbacv1.ClusterRole](t, render(t, nil), "ClusterRole")[0]
	in := map[string]bool{}
	for _, role := range decode[rbacv1.Role](t, documents, "Role") {
		if role.Name == "tare-operator" {
			in[role.Namespace] = reflect.DeepEqual(role.Rules, whole.Rules)
		}
	}
	bound := map[string]string{}
	for _, b := range decode[rbacv1.RoleBinding](t, documents, "RoleBinding") {
		bound[b.Namespace+"/"+b.RoleRef.Name] = fmt.Sprint(b.Subjects)
	}
	if want := map[string]bool{"a": true, "b": true}; !reflect.DeepEqual(in, want) || len(bound) != 3 {
		t.Errorf("got roles in %v, bound %v, want those of the whole cluster in a and b", in, bound)
	}
	d := decode[appsv1.Deployment](t, documents, "Deployment")[0]
	if pod := d.Spec.Template.Spec; *d.Spec.Replicas != 2 || pod.ImagePullSecrets[0].Name != "pull" || pod.NodeSelector["k"] != "v" || !slices.Contains(pod.Containers[0].Args, "-namespaces=a,b") {
		t.Errorf("got %+v, want the values in it", d.Spec)
	}
}

// TestPod wants the operator's container to have no more than it needs.
func TestPod(t *testing.T) {
	documents := render(t, nil)
	pod := decode[appsv1.Deployment](t, documents, "Deployment")[0].Spec.Template.Spec
	account := decode[corev1.ServiceAccount](t, documents, "ServiceAccount")[0]
	c := pod.Containers[0]
	switch s := c.SecurityContext; {
	case pod.ServiceAccountName != account.Name:
		t.Errorf("the pod runs as %q, the account is %q", pod.ServiceAccountName, account.Name)
	case !*pod.SecurityContext.RunAsNonRoot, pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault,
		*s.AllowPrivilegeEscalation, !*s.ReadOnlyRootFilesystem, !reflect.DeepEqual(s.Capabilities.Drop, []corev1.Capability{"ALL"}):
		t.Errorf("got %+v and %+v, want the restricted standard", pod.SecurityContext, s)
	case c.LivenessProbe == nil, c.ReadinessProbe == nil, c.Resources.Limits.Memory().IsZero():
		t.Errorf("got %+v, want probes and a limit", c)
	}
	want := []string{"operator", "-image=ghcr.io/tarehq/tare:latest", "-metrics=:8080", "-health=:8081", "-leader-namespace=tare-system"}
	if !slices.Equal(c.Args, want) {
		t.Errorf("got the arguments %q, want %q", c.Args, want)
	}
}

// watched is the pod of tare watch that the chart makes with these values.
func watched(t *testing.T, watch map[string]any) *appsv1.DaemonSet {
	t.Helper()
	watch["enabled"] = true
	all := decode[appsv1.DaemonSet](t, render(t, map[string]any{"watch": watch}), "DaemonSet")
	if len(all) != 1 {
		t.Fatalf("%d DaemonSets, want 1", len(all))
	}
	return &all[0]
}

// TestWatch wants tare watch on every node to be what the plain manifest is, which a test of
// the command reads, and to be left out unless it is asked for.
func TestWatch(t *testing.T) {
	if n := len(decode[appsv1.DaemonSet](t, render(t, nil), "DaemonSet")); n != 0 {
		t.Errorf("%d DaemonSets without being asked", n)
	}
	text, err := os.ReadFile("../../templates/watch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plain := decode[appsv1.DaemonSet](t, strings.Split(string(text), "\n---\n"), "DaemonSet")[0]
	got := watched(t, map[string]any{})
	if !reflect.DeepEqual(got.Spec.Template.Spec, plain.Spec.Template.Spec) || !reflect.DeepEqual(got.Spec.Template.Annotations, plain.Spec.Template.Annotations) {
		t.Errorf("got\n%+v\n%v\nwant\n%+v\n%v", got.Spec.Template.Spec, got.Spec.Template.Annotations, plain.Spec.Template.Spec, plain.Spec.Template.Annotations)
	}
	if labels := got.Spec.Template.Labels; !reflect.DeepEqual(got.Spec.Selector.MatchLabels, labels) || labels["app.kubernetes.io/name"] != "tare-watch" || got.Namespace != "tare-system" {
		t.Errorf("got %v in %s selected by %v", labels, got.Namespace, got.Spec.Selector)
	}
	operator := decode[appsv1.Deployment](t, render(t, nil), "Deployment")[0]
	if reflect.DeepEqual(operator.Spec.Selector.MatchLabels, got.Spec.Selector.MatchLabels) {
		t.Error("the operator's Deployment selects the same pods")
	}
}

// TestWatchValues has values reach the pod, and the operator be left out.
func TestWatchValues(t *testing.T) {
	pod := watched(t, map[string]any{
		"args": []any{"--budget", "0.2", "--all-go"}, "port": 9000, "keepBytes": "1GiB", "capabilities": []any{"BPF", "PERFMON", "SYS_PTRACE", "SYSLOG"},
		"seccompProfile": map[string]any{"type": "Unconfined"}, "nodeSelector": map[string]any{"pool": "web"}, "priorityClassName": "low",
		"profiles": map[string]any{"emptyDir": nil, "hostPath": map[string]any{"path": "/var/lib/tare"}}, "env": []any{map[string]any{"name": "A", "value": "b"}},
	}).Spec.Template.Spec
	c := pod.Containers[0]
	for _, want := range []string{"0.0.0.0:9000", "1GiB", "--budget", "0.2", "--all-go"} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("got the arguments %q, want %q among them", c.Args, want)
		}
	}
	switch {
	case c.Ports[0].ContainerPort != 9000, len(c.SecurityContext.Capabilities.Add) != 4, c.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined,
		pod.NodeSelector["pool"] != "web", pod.PriorityClassName != "low", pod.Volumes[2].HostPath == nil, pod.Volumes[2].EmptyDir != nil, c.Env[0].Name != "A":
		t.Errorf("got %+v, want the values in it", pod)
	}
	alone := render(t, map[string]any{"operator": map[string]any{"enabled": false}, "watch": map[string]any{"enabled": true}})
	if len(alone) != 1 {
		t.Errorf("%d objects beside tare watch, want none: %q", len(alone)-1, alone)
	}
}

// TestAdmitted has an API server take all that the chart makes, in a namespace that lets
// privileged pods in.
func TestAdmitted(t *testing.T) {
	c := testcluster.Start(t, testcluster.Options{Bare: true})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tare-system", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}
	if err := c.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for _, text := range render(t, map[string]any{"watch": map[string]any{"enabled": true}}) {
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if err := c.Client.Create(t.Context(), u, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}
