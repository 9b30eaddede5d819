// Package operator acts on the resources Study and LoadTest in a Kubernetes cluster.
//
// A run takes place in the operator's own cluster, or in those whose kubeconfigs the resource
// names. In each the operator applies the specimen's manifests, starts tare as jobs, waits
// for the outcome, and removes everything again. The status has the verdict of each cluster
// and of all.
//
// All that a run's course depends on is in the status, and is written there before it is
// acted on. So the operator may stop at any moment: its next process goes on where it was.
package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Options are the operator's settings.
type Options struct {
	Image      string   // of runs that name none
	Namespaces []string // that it looks at; empty: all
	Metrics    string   // address of /metrics; empty: none
	Health     string   // address of /healthz and /readyz; empty: none

	// LeaderNamespace is where the operators that run at a time agree on one that acts; empty:
	// this is the only one.
	LeaderNamespace string

	Log      *slog.Logger
	Registry prometheus.Registerer // nil: the one that Metrics serves

	now  func() time.Time // nil: time.Now
	poll time.Duration    // how often a run is looked at; 0: pollEvery
	jobs jobRunner        // zero: package jobs
}

// pollEvery is how often a run that goes on is looked at.
const pollEvery = 3 * time.Second

// shutdownTime is how long a step that was begun may take to end.
const shutdownTime = 10 * time.Second

// Run acts on resources until ctx ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	m, err := newManager(config, o)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// newManager makes a manager with a controller for each kind.
func newManager(config *rest.Config, o Options) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	logger := logr.Discard()
	if o.Log != nil {
		logger = logr.FromSlogHandler(o.Log.Handler())
	}
	log.SetLogger(logger)
	mo := manager.Options{
		Scheme: scheme, Logger: logger, Metrics: server.Options{BindAddress: addressOr0(o.Metrics)}, HealthProbeBindAddress: addressOr0(o.Health),
		LeaderElection: o.LeaderNamespace != "", LeaderElectionNamespace: o.LeaderNamespace, LeaderElectionID: "tare-operator",
		LeaderElectionReleaseOnCancel: true, // Run is the last thing that the process does
		GracefulShutdownTimeout:       new(shutdownTime),
	}
	for _, ns := range o.Namespaces {
		if mo.Cache.DefaultNamespaces == nil {
			mo.Cache.DefaultNamespaces = map[string]cache.Config{}
		}
		mo.Cache.DefaultNamespaces[ns] = cache.Config{}
	}
	m, err := manager.New(config, mo)
	if err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("api-server", apiServerAnswers(m, o.Namespaces))); err != nil {
		return nil, err
	}
	return m, addControllers(m, o)
}

// apiServerAnswers is ready while the API server lists studies.
func apiServerAnswers(m manager.Manager, namespaces []string) healthz.Checker {
	options := []client.ListOption{client.Limit(1)}
	if len(namespaces) > 0 { // in all, the operator may have no right to
		options = append(options, client.InNamespace(namespaces[0]))
	}
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		return m.GetAPIReader().List(ctx, &v1alpha1.StudyList{}, options...)
	}
}

// addressOr0 has no address be "0", by which the manager knows that there is none.
func addressOr0(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// kinds are the resources' kinds, each with an empty one.
func kinds() map[string]func() Resource {
	return map[string]func() Resource{
		"Study":    func() Resource { return &v1alpha1.Study{} },
		"LoadTest": func() Resource { return &v1alpha1.LoadTest{} },
	}
}

func addControllers(m manager.Manager, o Options) error {
	direct, err := client.New(m.GetConfig(), client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper(), HTTPClient: m.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if o.Registry == nil {
		o.Registry = metrics.Registry
	}
	counted, err := newCounters(o.Registry)
	if err != nil {
		return err
	}
	remote := &remotes{scheme: m.GetScheme()}
	for kind, empty := range kinds() {
		_, err := m.GetRESTMapper().RESTMapping(schema.GroupKind{Group: v1alpha1.Group, Kind: kind}, v1alpha1.GroupVersion().Version)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the cluster does not know the kind %s of %s: `tare operator --manifests` prints the definitions to apply first", kind, v1alpha1.Group)
		}
		if err != nil {
			return fmt.Errorf("asking the API server for the kind %s: %w", kind, err)
		}
		r := &reconciler{
			kind: kind, empty: empty, cached: m.GetClient(), direct: cluster{direct, m.GetConfig()}, remote: remote,
			events: m.GetEventRecorder("tare-operator"), counted: counted,
			image: o.Image, now: o.now, poll: o.poll, jobs: o.jobs.orReal(),
		}
		if r.now == nil {
			r.now = time.Now
		}
		if r.poll == 0 {
			r.poll = pollEvery
		}
		unchecked := true // names need not be unique: a test has several operators in its process
		err = builder.ControllerManagedBy(m).For(empty()).WithOptions(controller.Options{
			MaxConcurrentReconciles: 4, SkipNameValidation: &unchecked,
		}).Complete(r)
		if err != nil {
			return fmt.Errorf("adding the controller of %s: %w", kind, err)
		}
	}
	return nil
}
