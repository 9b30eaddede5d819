package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tarehq/tare/kube/carry"
	"github.com/tarehq/tare/kube/parcel"
	"github.com/tarehq/tare/lab/fleet/certs"
	"github.com/tarehq/tare/lab/fleet/wire"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels by which the objects of a run are known.
const (
	nameLabel      = "app.kubernetes.io/name"
	instanceLabel  = "app.kubernetes.io/instance"
	componentLabel = "app.kubernetes.io/component"

	coordinatorRole = "coordinator"
	agentRole       = "agent"
)

const (
	// linger is how long an outcome waits to be fetched.
	linger = 10 * time.Minute
	// begin is how long pods may take to begin.
	begin = 10 * time.Minute
	// keepEnded is how long Kubernetes keeps a Job that has ended, in seconds.
	keepEnded = 300
	// lostAfter is how long a node may be unreachable until its pods are given up, in seconds.
	lostAfter = 5
	// agentFailures is how often agents' pods may fail until all are given up.
	agentFailures = 6
	// graceSeconds is how long a pod may take to end.
	graceSeconds = 10
)

// Where things are in a pod.
const (
	tareProgram = "/usr/bin/tare"
	kubeProgram = "/usr/bin/tare-kube"
	secretDir   = "/tare"
	workDir     = "/work"
	tmpDir      = "/tmp"
	certsDir    = tmpDir + "/certs"
	keepFile    = tmpDir + "/outcome.json"
	configFile  = tmpDir + "/agent.yaml"
	nobody      = 65534
)

// Names of the containers.
const (
	tareContainer  = "tare"    // the coordinator's first, which runs tare
	offerContainer = "outcome" // its second, which offers the outcome
	agentContainer = "agent"
)

func agentsOf(name string) string { return name + "-agent" }

// hostOf is the name of a Job's pod of an index within the cluster.
func hostOf(job string, index int, name, namespace string) string {
	return fmt.Sprintf("%s-%d.%s.%s.svc", job, index, name, namespace)
}

func (s *Spec) meta(name, role string) metav1.ObjectMeta {
	labels := maps.Clone(s.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[nameLabel], labels[instanceLabel], labels[componentLabel] = "tare", s.Name, role
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: labels}
}

// secret has new certificates, the command line and the files. The authority's key is not kept.
func (s *Spec) secret() (*corev1.Secret, error) {
	dir, err := os.MkdirTemp("", "tare-certs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made, err := certs.Make(filepath.Join(dir, "certs"), []string{"*." + s.Name + "." + s.Namespace + ".svc"})
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: s.meta(s.Name, coordinatorRole), Data: map[string][]byte{}}
	for _, path := range []string{
		filepath.Join(dir, "certs", "ca.pem"), filepath.Join(dir, "certs", "coordinator.pem"), filepath.Join(dir, "certs", "coordinator.key"),
		filepath.Join(made[0], "agent.pem"), filepath.Join(made[0], "agent.key"),
	} {
		if secret.Data[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	files := s.Files
	if files == nil {
		files = parcel.Files{}
	}
	if secret.Data[carry.FilesKey], err = json.Marshal(files); err != nil {
		return nil, err
	}
	secret.Data[carry.CommandKey], err = json.Marshal(s.Args)
	return secret, err
}

// service gives the pods names, also while they are not ready: they are ready only in the end.
func (s *Spec) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: s.meta(s.Name, coordinatorRole),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
			Selector: map[string]string{instanceLabel: s.Name},
		},
	}
}

// hasArms reports whether arms run in the coordinator's pod.
func (s *Spec) hasArms() bool { return slices.Contains([]string{"run", "gate", "ab"}, s.Args[0]) }

func (s *Spec) agentHosts() []string {
	all := make([]string, s.Agents)
	for i := range all {
		all[i] = hostOf(agentsOf(s.Name), i, s.Name, s.Namespace)
	}
	return all
}

func (s *Spec) coordinator() *batchv1.Job {
	carrying := []string{kubeProgram, "carry", "-secret", secretDir, "-certs", certsDir, "-work", workDir, "-keep", keepFile, "-within", s.Deadline.String()}
	for _, host := range s.agentHosts() {
		carrying = append(carrying, "-agent", host+":"+wire.DefaultPort)
	}
	for _, folder := range s.Folders {
		carrying = append(carrying, "-folder", folder)
	}
	if s.hasArms() {
		carrying = append(carrying, "-arm-on", "$(POD_IP)")
	}
	first := s.container(tareContainer, append(carrying, "--", tareProgram))
	second := s.container(offerContainer, []string{kubeProgram, "offer", "-secret", secretDir, "-certs", tmpDir + "/offer", "-keep", keepFile, "-for", linger.String()})
	pod := s.pod("ca.pem", "coordinator.pem", "coordinator.key", "agent.pem", "agent.key", carry.FilesKey, carry.CommandKey)
	pod.InitContainers, pod.Containers = []corev1.Container{first}, []corev1.Container{second}
	pod.RestartPolicy = corev1.RestartPolicyNever
	if s.hasArms() {
		pod.Affinity = s.awayFrom(agentRole)
	}
	job := s.job(s.Name, coordinatorRole, 1, pod)
	job.Spec.BackoffLimit = new(int32)
	return job
}

func (s *Spec) agents(places []string) *batchv1.Job {
	serving := []string{kubeProgram, "agent", "-secret", secretDir, "-certs", certsDir, "-config", configFile}
	for _, p := range places {
		serving = append(serving, "-allow", p)
	}
	if s.hasArms() {
		serving = append(serving, "-arms", hostOf(s.Name, 0, s.Name, s.Namespace))
	}
	pod := s.pod("ca.pem", "agent.pem", "agent.key")
	pod.Containers = []corev1.Container{s.container(agentContainer, append(serving, "--", tareProgram))}
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	spread := agentRole
	if s.hasArms() {
		// Spreading weighs as much as keeping away, and would bring every second agent to the arms
		// where there are two nodes. It counts the arms' pod, then, and agents avoid each other less.
		spread = coordinatorRole
		pod.Affinity = s.awayFrom(coordinatorRole, agentRole)
	}
	pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: s.selector(spread),
	}}
	job := s.job(agentsOf(s.Name), agentRole, s.Agents, pod)
	job.Spec.BackoffLimit = new(int32(agentFailures))
	return job
}

// job is an Indexed Job, whose pods have names of their own.
func (s *Spec) job(name, role string, pods int, pod corev1.PodSpec) *batchv1.Job {
	meta := s.meta(name, role)
	return &batchv1.Job{
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{
			CompletionMode: new(batchv1.IndexedCompletion), Completions: new(int32(pods)), Parallelism: new(int32(pods)),
			ActiveDeadlineSeconds: new(int64((begin + s.Deadline + linger).Seconds())), TTLSecondsAfterFinished: new(int32(keepEnded)),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: pod},
		},
	}
}

// pod is what all pods have alike, with these keys of the Secret. They need no rights and get
// none.
func (s *Spec) pod(keys ...string) corev1.PodSpec {
	var items []corev1.KeyToPath
	for _, key := range keys {
		items = append(items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.PodSpec{
		Subdomain: s.Name, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
		TerminationGracePeriodSeconds: new(int64(graceSeconds)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(lostAfter))},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(lostAfter))},
		},
		Volumes: []corev1.Volume{
			{Name: "tare", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.Name, Items: items, DefaultMode: new(int32(0o444))}}},
			{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
}

func (s *Spec) container(name string, command []string) corev1.Container {
	both := corev1.ResourceList{corev1.ResourceCPU: s.CPU, corev1.ResourceMemory: s.Memory}
	return corev1.Container{
		Name: name, Image: s.Image, Command: command, WorkingDir: workDir,
		Env: []corev1.EnvVar{
			{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
			{Name: "HOME", Value: tmpDir}, {Name: "TMPDIR", Value: tmpDir},
		},
		Resources: corev1.ResourceRequirements{Requests: both, Limits: both},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(bool), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "tare", MountPath: secretDir, ReadOnly: true}, {Name: "work", MountPath: workDir}, {Name: "tmp", MountPath: tmpDir},
		},
	}
}

// awayFrom prefers nodes without pods of these roles, the first above all. Where there is one
// node, it has all.
func (s *Spec) awayFrom(roles ...string) *corev1.Affinity {
	var terms []corev1.WeightedPodAffinityTerm
	weight := int32(100)
	for _, role := range roles {
		terms = append(terms, corev1.WeightedPodAffinityTerm{
			Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: s.selector(role)},
		})
		weight = 1
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
}

func (s *Spec) selector(role string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{instanceLabel: s.Name, componentLabel: role}}
}
