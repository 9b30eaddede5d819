package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"strings"
	_ "time/tzdata" // schedules have time zones, and the image has no files of them

	"github.com/tarehq/tare/kube/chart"
	"github.com/tarehq/tare/kube/operator"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// operate acts on resources until ctx ends.
func operate(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := operator.Options{Log: slog.New(slog.NewJSONHandler(stderr, nil))}
	flags := flag.NewFlagSet("tare-kube operator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	namespaces := flags.String("namespaces", "", "namespaces to look at, separated by commas (default: all)")
	flags.StringVar(&o.Image, "image", "", "image of runs whose resource names none; with -manifests, also the operator's")
	flags.StringVar(&o.Metrics, "metrics", "", "address of /metrics")
	flags.StringVar(&o.Health, "health", "", "address of /healthz and /readyz")
	flags.StringVar(&o.LeaderNamespace, "leader-namespace", "", "namespace in which operators elect one that acts")
	manifests := flags.Bool("manifests", false, "print the manifests that install the operator, and stop")
	if err := flags.Parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			err = &failure{status: 2} // flag said why
		}
		return err
	}
	if flags.NArg() > 0 {
		return &failure{status: 2, err: errors.New("operator takes flags alone")}
	}
	if *manifests {
		_, err := io.WriteString(stdout, chart.Manifests(o.Image))
		return err
	}
	if *namespaces != "" {
		o.Namespaces = strings.Split(*namespaces, ",")
	}
	_, config, err := findCluster()
	if err != nil {
		return err
	}
	klog.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	return operator.Run(ctx, config, o)
}
