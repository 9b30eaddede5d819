package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/tarehq/tare/kube/api/v1alpha1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is the operator's name where objects are applied.
const fieldOwner = client.FieldOwner("tare-operator")

var errTerminating = errors.New("that of the last run is still being removed")

// objectsOf names the objects of a specimen, in order.
func objectsOf(s *v1alpha1.Specimen) []v1alpha1.Object {
	if s == nil {
		return nil
	}
	var all []v1alpha1.Object
	for _, m := range s.Manifests {
		if u, err := decode(m); err == nil { // apply reports what is wrong
			all = append(all, v1alpha1.Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()})
		}
	}
	return all
}

func decode(m runtime.RawExtension) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(m.Raw); err != nil {
		return nil, err
	}
	return u, nil
}

func nameOf(o v1alpha1.Object) string { return o.Kind + " " + o.Name }

// apply applies the specimen that the status names, by server-side apply. What is there
// already and is not of this resource stays as it is, and is an error.
func (p *pass) apply(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun) error {
	specimen := p.res.Plan().Specimen
	if specimen == nil {
		return nil
	}
	listed := map[v1alpha1.Object]bool{}
	for _, o := range c.Specimen {
		listed[o] = true
	}
	for i, m := range specimen.Manifests {
		u, err := decode(m)
		if err != nil {
			return fmt.Errorf("spec.specimen.manifests[%d]: %w", i, err)
		}
		o := v1alpha1.Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()}
		if !listed[o] {
			continue // the spec changed meanwhile: what is not in the status would not be removed
		}
		if err := p.applyOne(ctx, cl, c, u); err != nil {
			return fmt.Errorf("applying %s: %w", nameOf(o), err)
		}
	}
	return nil
}

func (p *pass) applyOne(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun, u *unstructured.Unstructured) error {
	namespaced, err := cl.IsObjectNamespaced(u)
	if err != nil {
		return err
	}
	if !namespaced {
		return errors.New("it is of the whole cluster: a specimen has objects of its namespace alone")
	}
	if ns := u.GetNamespace(); ns != "" && ns != c.Namespace {
		return fmt.Errorf("its namespace is %s, that of the run %s: leave it out", ns, c.Namespace)
	}
	u.SetNamespace(c.Namespace)
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, p.labels(c))
	u.SetLabels(labels)
	u.SetOwnerReferences(nil)
	if owner := p.owner(c); owner != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	switch there, err := p.find(ctx, cl, c, v1alpha1.Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()}); {
	case err != nil:
		return err
	case there != nil && !p.isOurs(there, c):
		return errors.New("it is there already, and is not of this resource: give the specimen's another name")
	case there != nil && there.GetDeletionTimestamp() != nil:
		return errTerminating
	}
	return cl.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner, client.ForceOwnership)
}

// find returns an object of a specimen, nil if it is not there.
func (p *pass) find(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun, o v1alpha1.Object) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(o.APIVersion)
	u.SetKind(o.Kind)
	err := cl.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: o.Name}, u)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return u, nil
}

func (p *pass) isOurs(u *unstructured.Unstructured, c *v1alpha1.ClusterRun) bool {
	labels := u.GetLabels()
	return labels[labelOwner] == string(p.res.GetUID()) && labels[labelCluster] == c.Name
}

// unready says what of the specimen is not ready yet; "" if all is.
func (p *pass) unready(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun) (string, error) {
	for _, o := range c.Specimen {
		u, err := p.find(ctx, cl, c, o)
		switch {
		case err != nil:
			return "", fmt.Errorf("looking at %s: %w", nameOf(o), err)
		case u == nil:
			return nameOf(o) + " is gone", nil
		}
		if ready, want, counted := readiness(u); counted && ready < want {
			return fmt.Sprintf("%s has %d of %d ready", nameOf(o), ready, want), nil
		}
	}
	return "", nil
}

// readiness counts the replicas of an object that are ready; not counted are kinds that have
// none.
func readiness(u *unstructured.Unstructured) (ready, want int64, counted bool) {
	count := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, path...)
		return n
	}
	seen := count("status", "observedGeneration") >= u.GetGeneration() // by its controller
	want = 1
	if replicas, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		want = replicas
	}
	switch u.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps":
		ready = count("status", "availableReplicas")
	case "StatefulSet.apps":
		ready = count("status", "readyReplicas")
	case "DaemonSet.apps":
		ready, want = count("status", "numberReady"), max(1, count("status", "desiredNumberScheduled"))
	case "Pod":
		seen = true
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] == "True" {
				ready = 1
			}
		}
	default:
		return 0, 0, false
	}
	if !seen {
		ready = 0
	}
	return ready, want, true
}

// removeSpecimen removes the specimen, what was applied last first.
func (p *pass) removeSpecimen(ctx context.Context, cl cluster, c *v1alpha1.ClusterRun) error {
	var all error
	for i := len(c.Specimen) - 1; i >= 0; i-- {
		o := c.Specimen[i]
		u, err := p.find(ctx, cl, c, o)
		if meta.IsNoMatchError(err) || err == nil && (u == nil || !p.isOurs(u, c)) {
			continue
		}
		if err == nil {
			uid := u.GetUID()
			err = client.IgnoreNotFound(cl.Delete(ctx, u, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("removing %s: %w", nameOf(o), err))
		}
	}
	return all
}
