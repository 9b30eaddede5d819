// Package v1alpha1 has the resources that the operator acts on: Study and LoadTest.
//
// Their schemas are in kube/chart/crds. The API server checks what is written by them alone,
// with rules in CEL, so there is no webhook. Whatever passes a schema can be read by the
// types here: a resource that could not would keep the operator from seeing all others.
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Study runs a study, once or by a schedule, in one cluster or several.
type Study struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StudySpec `json:"spec"`
	Status Status    `json:"status,omitzero"`
}

// StudySpec says which study is run. Either Study or StudyFile is set.
type StudySpec struct {
	RunSpec `json:",inline"`

	Study     string   `json:"study,omitempty"`     // a built-in study
	StudyFile string   `json:"studyFile,omitempty"` // the text of a study file
	Quick     bool     `json:"quick,omitempty"`     // the short form
	Arms      []string `json:"arms,omitempty"`      // these and the control; empty: all
	Budget    string   `json:"budget,omitempty"`    // caps the run time: a duration, such as 10m
}

// LoadTest loads a URL, once or by a schedule, in one cluster or several.
type LoadTest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LoadTestSpec `json:"spec"`
	Status Status       `json:"status,omitzero"`
}

// LoadTestSpec says what load is offered, in the words of tare load's flags.
type LoadTestSpec struct {
	RunSpec `json:",inline"`

	URL         string   `json:"url"`
	Rate        string   `json:"rate,omitempty"`        // open loop, such as 1000 or poisson:1000; empty: closed loop
	Connections int32    `json:"connections,omitempty"` // 0: tare's default
	Duration    string   `json:"duration,omitempty"`    // of the measured part; empty: tare's default
	FailIf      []string `json:"failIf,omitempty"`      // thresholds, such as p99>50ms
}

// RunSpec is what both kinds have: where and when a run takes place.
type RunSpec struct {
	Image     string     `json:"image,omitempty"` // that holds tare and tare-kube; empty: the operator's choice
	Agents    int32      `json:"agents,omitempty"`
	Resources *Resources `json:"resources,omitempty"`
	Deadline  string     `json:"deadline,omitempty"` // of a run: a duration; empty: DefaultDeadline

	Schedule          string      `json:"schedule,omitempty"` // cron, in five fields; empty: once for each spec
	TimeZone          string      `json:"timeZone,omitempty"` // such as Europe/Berlin; empty: UTC
	ConcurrencyPolicy Concurrency `json:"concurrencyPolicy,omitempty"`
	Suspend           bool        `json:"suspend,omitempty"`      // begins no run
	HistoryLimit      *int32      `json:"historyLimit,omitempty"` // finished runs kept; nil: DefaultHistory

	Clusters []Cluster `json:"clusters,omitempty"` // empty: this one
	Specimen *Specimen `json:"specimen,omitempty"` // nil: what is measured is there
}

// Concurrency says what happens when a run is due while one goes on. Two runs at a time would
// disturb each other, so there is no way to have both.
type Concurrency string

// The policies. An empty one is Forbid.
const (
	Forbid  Concurrency = "Forbid"  // the new one is skipped
	Replace Concurrency = "Replace" // the old one ends without a result
)

// Resources are those of each pod. Requests are limits, so that its class is Guaranteed.
type Resources struct {
	CPU    resource.Quantity `json:"cpu,omitzero"`
	Memory resource.Quantity `json:"memory,omitzero"`
}

// Cluster is one of those that a run takes place in.
type Cluster struct {
	Name string `json:"name"`
	// KubeconfigSecret gives access; nil is the operator's own cluster, and there the resource's
	// own namespace.
	KubeconfigSecret *SecretKey `json:"kubeconfigSecret,omitempty"`
	Namespace        string     `json:"namespace,omitempty"` // there; empty: that of the resource
}

// SecretKey names a value of a Secret in the resource's namespace.
type SecretKey struct {
	Name string `json:"name"`
	Key  string `json:"key,omitempty"` // empty: kubeconfig
}

// Specimen is what is measured. Its manifests are applied to each cluster before a run and
// removed after it.
type Specimen struct {
	Manifests   []runtime.RawExtension `json:"manifests"`
	ReadyWithin string                 `json:"readyWithin,omitempty"` // a duration; empty: DefaultReady
}

// Status is what both kinds report.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Verdict            string             `json:"verdict,omitempty"` // of the last finished run, in one line
	NextRun            *metav1.Time       `json:"nextRun,omitempty"` // nil: none is planned
	// ScheduledThrough is the time up to which the ticks of Schedule have had their runs or were
	// passed over. RanGeneration is the spec that the last run began with.
	ScheduledThrough *metav1.Time `json:"scheduledThrough,omitempty"`
	Schedule         string       `json:"schedule,omitempty"`
	RanGeneration    int64        `json:"ranGeneration,omitempty"`

	Active  *Run  `json:"active,omitempty"`
	History []Run `json:"history,omitempty"` // the newest first
}

// Run is one run in all clusters.
type Run struct {
	Name     string       `json:"name"`
	Phase    Phase        `json:"phase"`
	Verdict  string       `json:"verdict,omitempty"`
	Started  metav1.Time  `json:"started"`
	Ended    *metav1.Time `json:"ended,omitempty"`
	Clusters []ClusterRun `json:"clusters"`
}

// ClusterRun is a run's part in one cluster.
//
// It repeats of the spec what removing needs, since the spec may change meanwhile.
type ClusterRun struct {
	Name       string       `json:"name"`
	Phase      Phase        `json:"phase"`
	Verdict    string       `json:"verdict,omitempty"`    // in one line
	Reason     string       `json:"reason,omitempty"`     // why it waits or failed, in one word
	Message    string       `json:"message,omitempty"`    // the same in a sentence
	WaitsSince *metav1.Time `json:"waitsSince,omitempty"` // for what Reason names
	Started    *metav1.Time `json:"started,omitempty"`
	Ended      *metav1.Time `json:"ended,omitempty"`
	ExitStatus *int32       `json:"exitStatus,omitempty"` // of tare
	Result     string       `json:"result,omitempty"`     // ConfigMap with the JSON, in the resource's namespace
	Removed    bool         `json:"removed,omitempty"`    // nothing of the run is left there

	Jobs             string     `json:"jobs"` // what the run's jobs are called there
	Namespace        string     `json:"namespace"`
	KubeconfigSecret *SecretKey `json:"kubeconfigSecret,omitempty"`
	Specimen         []Object   `json:"specimen,omitempty"`
}

// Object names an object of a specimen.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Phase is how far a run is.
type Phase string

// The phases of a run, and of its part in a cluster. The first three go on.
const (
	Pending      Phase = "Pending"   // nothing is there yet
	Preparing    Phase = "Preparing" // the specimen is applied and gets ready
	Running      Phase = "Running"
	Succeeded    Phase = "Succeeded"
	Failed       Phase = "Failed"
	Inconclusive Phase = "Inconclusive" // it ran and decided nothing
	Unreachable  Phase = "Unreachable"  // the cluster could not be reached
	Partial      Phase = "Partial"      // of a run: it succeeded in some clusters, others were not reached
)

// Ended reports whether a phase is a last one.
func (p Phase) Ended() bool { return p != Pending && p != Preparing && p != Running && p != "" }

// The conditions of both kinds.
const (
	Accepted  = "Accepted"  // the spec makes sense
	InRun     = "Running"   // a run goes on
	Reachable = "Reachable" // all clusters were reached
	Allowed   = "Allowed"   // no right is missing
	Success   = "Succeeded" // the last finished run succeeded
)

// StudyList is a list of studies.
type StudyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Study `json:"items"`
}

// LoadTestList is a list of load tests.
type LoadTestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LoadTest `json:"items"`
}
