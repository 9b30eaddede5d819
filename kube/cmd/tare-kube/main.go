// Command tare-kube runs tare in Kubernetes. `tare load --on k8s`, `tare run --on k8s` and
// `tare operator` start it.
//
// Beside that, it is what runs in the pods.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// failure is an error with an exit status.
type failure struct {
	status int
	err    error // nil: the reason is on the screen
}

func (f *failure) Error() string { return fmt.Sprint(f.err) }

// run does what the first argument names, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	perform := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"on": call, "operator": operate, "carry": carryTare, "offer": offer, "agent": serveAgent,
	}
	if len(args) == 0 || perform[args[0]] == nil {
		fmt.Fprintln(stderr, "tare: tare-kube is started by `tare load --on k8s`, `tare run --on k8s` and `tare operator`")
		return 2
	}
	klog.SetLogger(logr.Discard()) // what libraries say of a connection that ended
	ctrllog.SetLogger(logr.Discard())
	err := perform[args[0]](ctx, args[1:], stdout, stderr)
	var f *failure
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 2
	case errors.As(err, &f):
		if f.err != nil {
			fmt.Fprintf(stderr, "tare: %v\n", f.err)
		}
		return f.status
	}
	fmt.Fprintf(stderr, "tare: %v\n", err)
	return 1
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint(*l) }

func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}
