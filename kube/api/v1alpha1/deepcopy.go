package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject returns a copy that shares nothing with s.
func (s *Study) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopy returns a copy that shares nothing with s.
func (s *Study) DeepCopy() *Study {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.RunSpec = s.Spec.RunSpec.copied()
	out.Spec.Arms = slices.Clone(s.Spec.Arms)
	out.Status = s.Status.copied()
	return &out
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *StudyList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = copiedEach(l.Items, func(s Study) Study { return *s.DeepCopy() })
	return &out
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *LoadTest) DeepCopyObject() runtime.Object { return l.DeepCopy() }

// DeepCopy returns a copy that shares nothing with l.
func (l *LoadTest) DeepCopy() *LoadTest {
	out := *l
	l.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.RunSpec = l.Spec.RunSpec.copied()
	out.Spec.FailIf = slices.Clone(l.Spec.FailIf)
	out.Status = l.Status.copied()
	return &out
}

// DeepCopyObject returns a copy that shares nothing with l.
func (l *LoadTestList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = copiedEach(l.Items, func(t LoadTest) LoadTest { return *t.DeepCopy() })
	return &out
}

func (r *RunSpec) copied() RunSpec {
	out := *r
	if r.Resources != nil {
		out.Resources = &Resources{CPU: r.Resources.CPU.DeepCopy(), Memory: r.Resources.Memory.DeepCopy()}
	}
	out.HistoryLimit = copiedPointer(r.HistoryLimit)
	out.Clusters = copiedEach(r.Clusters, func(c Cluster) Cluster {
		c.KubeconfigSecret = copiedPointer(c.KubeconfigSecret)
		return c
	})
	if r.Specimen != nil {
		specimen := *r.Specimen
		specimen.Manifests = copiedEach(specimen.Manifests, func(m runtime.RawExtension) runtime.RawExtension { return *m.DeepCopy() })
		out.Specimen = &specimen
	}
	return out
}

func (s *Status) copied() Status {
	out := *s
	out.Conditions = copiedEach(s.Conditions, func(c metav1.Condition) metav1.Condition { return *c.DeepCopy() })
	out.NextRun, out.ScheduledThrough = s.NextRun.DeepCopy(), s.ScheduledThrough.DeepCopy()
	if s.Active != nil {
		active := s.Active.copied()
		out.Active = &active
	}
	out.History = copiedEach(s.History, func(r Run) Run { return r.copied() })
	return out
}

func (r *Run) copied() Run {
	out := *r
	out.Started, out.Ended = *r.Started.DeepCopy(), r.Ended.DeepCopy()
	out.Clusters = copiedEach(r.Clusters, func(c ClusterRun) ClusterRun {
		c.Started, c.Ended, c.ExitStatus = c.Started.DeepCopy(), c.Ended.DeepCopy(), copiedPointer(c.ExitStatus)
		c.WaitsSince = c.WaitsSince.DeepCopy()
		c.KubeconfigSecret, c.Specimen = copiedPointer(c.KubeconfigSecret), slices.Clone(c.Specimen)
		return c
	})
	return out
}

func copiedPointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func copiedEach[T any](list []T, copied func(T) T) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(list))
	for i := range list {
		out[i] = copied(list[i])
	}
	return out
}
