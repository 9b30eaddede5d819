// Package jobs runs a command line of tare in a namespace of a Kubernetes cluster: a pod that
// coordinates, pods that make load, and what they need.
//
// # What a run is made of
//
// The coordinator is a Job of one pod, in which tare runs as it does anywhere else. The arms
// of a study run in that pod, too. The agents are an Indexed Job. A headless Service gives
// all pods names, and a Secret holds the certificates of this run and the files to work on.
// Nothing but rights in the namespace is needed: [Role] lists them.
//
// # What comes back
//
// Logs are for people. The outcome, which is what tare printed, its exit status and the files
// that it wrote, is kept in the coordinator's pod and fetched through the API server, over
// mutual TLS from end to end.
//
// # What is left behind
//
// Nothing, after Remove. If whoever started a run is gone, the coordinator's Job ends 20
// minutes after the deadline at the latest. Kubernetes deletes it five minutes later, and with
// it all that it owns.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tarehq/tare/kube/parcel"
	"github.com/tarehq/tare/load"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Spec is one command line of tare, to run in a namespace. Name, Namespace, Image and Args
// are required.
type Spec struct {
	Name      string       // of all objects, with endings: a DNS label of at most 40 bytes
	Namespace string       // exists already
	Image     string       // has /usr/bin/tare and /usr/bin/tare-kube
	Agents    int          // pods that make load, at most 1000; 0: the coordinator's process does
	Args      []string     // the command line from its verb on, without --on and --certs
	Targets   []string     // URLs that agents may load, beside the arms of a study
	Files     parcel.Files // in the working folder; at most 512 KiB in all
	Folders   []string     // to make in it, for what the command writes

	CPU, Memory resource.Quantity // of each pod, as request and limit; 0: 1 and 512 MiB
	Deadline    time.Duration     // of the command: it is interrupted then, and what it has is its outcome; 0: 1 h

	Labels map[string]string      // of all objects, beside those by which this package knows them
	Owner  *metav1.OwnerReference // of all objects: they go with it; nil: the coordinator's Job owns the others
}

// Bounds of a Spec.
const (
	mostAgents = 1000
	mostFiles  = 512 << 10 // of what a Secret may hold, there is room for base64 and certificates
)

var nameForm = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$`)

// check refuses what cannot run, and fills in what is left out.
func (s *Spec) check() error {
	size := 0
	for _, content := range s.Files {
		size += len(content)
	}
	switch {
	case !nameForm.MatchString(s.Name):
		return fmt.Errorf("the name %q is not a DNS label of at most 40 characters", s.Name)
	case s.Namespace == "", s.Image == "", len(s.Args) == 0:
		return errors.New("a namespace, an image and a command line are required")
	case s.Agents < 0 || s.Agents > mostAgents:
		return fmt.Errorf("%d agents: want 0 to %d", s.Agents, mostAgents)
	case size > mostFiles:
		return fmt.Errorf("the files have %d bytes in all, and at most %d fit: put larger ones into the image", size, mostFiles)
	case s.CPU.Sign() < 0 || s.Memory.Sign() < 0 || s.Deadline < 0:
		return errors.New("CPU, memory and deadline must not be negative")
	}
	if s.CPU.IsZero() {
		s.CPU = resource.MustParse("1")
	}
	if s.Memory.IsZero() {
		s.Memory = resource.MustParse("512Mi")
	}
	s.Deadline = cmp.Or(s.Deadline, time.Hour)
	return nil
}

// places are the targets as host:port, each once.
func (s *Spec) places() ([]string, error) {
	var all []string
	for _, target := range s.Targets {
		scheme, host, _ := strings.Cut(load.AbsoluteURL(target), "://")
		if i := strings.IndexAny(host, "/?#"); i >= 0 {
			host = host[:i] // what follows may have fields to fill
		}
		u, err := url.Parse(scheme + "://" + host)
		port := ""
		if err == nil {
			port = cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		}
		if port == "" || u.Hostname() == "" {
			return nil, fmt.Errorf("target %q is not a URL such as http://service.namespace:8080/", load.Shown(target))
		}
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return nil, fmt.Errorf("target %q would be the pod that makes the load: name a service, such as http://service.namespace:8080/", load.Shown(target))
		}
		if place := net.JoinHostPort(u.Hostname(), port); !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	return all, nil
}

// Start creates the objects of a run. What is there already is kept: after a crash, Start
// creates what is missing. After an error, Remove removes what was created.
func Start(ctx context.Context, c client.Client, s Spec) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("starting pods: %w", err)
	}
	places, err := s.places()
	if err != nil {
		return fmt.Errorf("starting pods: %w", err)
	}
	secret, err := s.secret()
	if err != nil {
		return fmt.Errorf("starting pods: %w", err)
	}
	job := s.coordinator()
	if err := create(ctx, c, job, s.Owner); err != nil {
		return err
	}
	owner := s.Owner
	if owner == nil {
		if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return fmt.Errorf("starting pods: %w", err)
		}
		owner = &metav1.OwnerReference{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID}
	}
	rest := []client.Object{secret, s.service()}
	if s.Agents > 0 {
		rest = append(rest, s.agents(places))
	}
	for _, object := range rest {
		if err := create(ctx, c, object, owner); err != nil {
			return err
		}
	}
	return nil
}

// create creates an object that has an owner, unless it is there.
func create(ctx context.Context, c client.Client, object client.Object, owner *metav1.OwnerReference) error {
	if owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("starting pods: %w", err)
	}
	return nil
}

// Remove deletes the objects of a run, whichever there are. Kubernetes ends the pods within
// seconds.
func Remove(ctx context.Context, c client.Client, namespace, name string) error {
	var errs []error
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	agents := metav1.ObjectMeta{Namespace: namespace, Name: agentsOf(name)}
	for _, object := range []client.Object{
		&batchv1.Job{ObjectMeta: agents}, &batchv1.Job{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta},
	} {
		err := c.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing pods: %w", err)
	}
	return nil
}
