package operator

import (
	"fmt"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"

	"github.com/prometheus/client_golang/prometheus"
)

// counters count the runs that ended. Labels are kinds and phases, so that their number does
// not grow with that of the resources.
type counters struct {
	runs, clusters *prometheus.CounterVec
	seconds        *prometheus.HistogramVec
}

func newCounters(registry prometheus.Registerer) (*counters, error) {
	c := &counters{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tare_operator_runs_total", Help: "Runs that ended, by the kind of their resource and the phase that they ended in.",
		}, []string{"kind", "phase"}),
		clusters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tare_operator_cluster_runs_total", Help: "The same for each cluster of a run.",
		}, []string{"kind", "phase"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tare_operator_run_duration_seconds", Help: "From the beginning of a run until nothing was left of it.",
			Buckets: prometheus.ExponentialBuckets(10, 2, 12), // to 5.7 hours
		}, []string{"kind"}),
	}
	for _, all := range []prometheus.Collector{c.runs, c.clusters, c.seconds} {
		if err := registry.Register(all); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return c, nil
}

// count counts a run that ended.
func (c *counters) count(kind string, run *v1alpha1.Run) {
	c.runs.WithLabelValues(kind, string(run.Phase)).Inc()
	c.seconds.WithLabelValues(kind).Observe(run.Ended.Sub(run.Started.Time).Round(time.Millisecond).Seconds())
	for _, part := range run.Clusters {
		c.clusters.WithLabelValues(kind, string(part.Phase)).Inc()
	}
}
