package operator

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/parcel"
	"github.com/tarehq/tare/kube/testcluster"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// By these variables the test's program is an operator.
const (
	childConfig    = "TARE_TEST_OPERATOR" // its kubeconfig
	childNamespace = "TARE_TEST_NAMESPACE"
	childMetrics   = "TARE_TEST_METRICS"
	childHealth    = "TARE_TEST_HEALTH"
)

// beOperator runs the operator until it is told to end.
func beOperator() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(childConfig))
	if err == nil {
		err = Run(ctx, config, Options{
			Image: "registry.test/tare:1", Namespaces: []string{os.Getenv(childNamespace)},
			Metrics: os.Getenv(childMetrics), Health: os.Getenv(childHealth),
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), poll: 100 * time.Millisecond,
			jobs: jobRunner{fetch: func(context.Context, *rest.Config, client.Client, string, string) (*parcel.Outcome, error) {
				return loadOutcome(750), nil
			}},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestRestart kills the operator's process amid a run and starts another. The run goes on, and
// is not begun a second time.
func TestRestart(t *testing.T) {
	p := newPlace(t)
	p.install()
	kubeconfig := p.Kubeconfig(account, "default")
	metrics, health := freeAddress(t), freeAddress(t)
	operate := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childConfig+"="+kubeconfig, childNamespace+"="+p.namespace, childMetrics+"="+metrics, childHealth+"="+health)
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	first := operate()
	d := &driver{place: p, r: &reconciler{kind: "LoadTest", empty: kinds()["LoadTest"]}}
	d.create("load", `{url: "http://a/"}`)
	status := func(what string, so func(*v1alpha1.Status) bool) *v1alpha1.Status {
		t.Helper()
		got := &v1alpha1.LoadTest{}
		p.eventually(what, func() error {
			if err := p.admin.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "load"}, got); err != nil {
				return err
			}
			if !so(&got.Status) {
				return fmt.Errorf("the status is %+v", got.Status)
			}
			return nil
		})
		return &got.Status
	}
	run := status("the run begins", runs).Active.Name
	before := jobUIDs(t, p)
	_ = first.Process.Kill()
	_ = first.Wait()
	p.playCoordinators() // it ends while nobody looks

	second := operate()
	s := status("the run ends", rests)
	if len(s.History) != 1 || s.History[0].Name != run || s.History[0].Phase != v1alpha1.Succeeded || !strings.HasPrefix(s.Verdict, "750/s") {
		t.Errorf("got %+v, want the one run %s to have succeeded", s, run)
	}
	if len(before) != 1 || len(p.left()) > 0 {
		t.Errorf("%d jobs ran and %q are left, want one and none", len(before), p.left())
	}
	checkEvents(t, p)
	for address, want := range map[string]string{
		"http://" + metrics + "/metrics": `tare_operator_runs_total{kind="LoadTest",phase="Succeeded"} 1`,
		"http://" + health + "/healthz":  "ok", "http://" + health + "/readyz": "ok",
	} {
		p.eventually(address, func() error { return answers(address, want) })
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("told to end, the operator ended with %v", err)
	}
}

func jobUIDs(t *testing.T, p *place) (all []types.UID) {
	t.Helper()
	var list batchv1.JobList
	if err := p.admin.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, j := range list.Items {
		all = append(all, j.UID)
	}
	return all
}

func checkEvents(t *testing.T, p *place) {
	t.Helper()
	p.eventually("the events are written", func() error {
		var list eventsv1.EventList
		if err := p.admin.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
			return err
		}
		var reasons []string
		for _, e := range list.Items {
			reasons = append(reasons, e.Reason)
		}
		slices.Sort(reasons)
		if want := []string{"RunStarted", "RunSucceeded"}; !slices.Equal(reasons, want) {
			return fmt.Errorf("got events for %q, want %q", reasons, want)
		}
		return nil
	})
}

func answers(address, want string) error {
	res, err := http.Get(address)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || !strings.Contains(string(text), want)) {
		err = fmt.Errorf("got status %d and %.300q, want %q in it", res.StatusCode, text, want)
	}
	return err
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestOperatorPod has the API server admit the operator's own pod by the strictest standard.
func TestOperatorPod(t *testing.T) {
	p := newPlace(t)
	p.install()
	var d appsv1.Deployment
	if err := p.admin.Get(t.Context(), client.ObjectKey{Namespace: "tare-system", Name: "tare-operator"}, &d); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "operator"}, Spec: d.Spec.Template.Spec}
	if err := p.admin.Create(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

// TestLeader has two operators elect one; when that ends, the other takes over.
func TestLeader(t *testing.T) {
	p := newPlace(t)
	p.install()
	type operator struct {
		elected <-chan struct{}
		end     func()
	}
	begin := func() operator {
		ctx, cancel := context.WithCancel(t.Context())
		m, err := newManager(p.As(account), Options{LeaderNamespace: "tare-system", Namespaces: []string{p.namespace}, Registry: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		return operator{m.Elected(), func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}}
	}
	first := begin()
	wait(t, first.elected)
	second := begin()
	select {
	case <-second.elected:
		t.Error("both act")
	case <-time.After(3 * time.Second):
	}
	first.end()
	wait(t, second.elected)
	second.end()
}

func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal("nobody was elected")
	}
}

// TestNoDefinitions wants the remedy named where the resources are unknown.
func TestNoDefinitions(t *testing.T) {
	c := testcluster.Start(t, testcluster.Options{Bare: true})
	if _, err := newManager(c.Config, Options{Registry: prometheus.NewRegistry()}); err == nil || !strings.Contains(err.Error(), "tare operator --manifests") {
		t.Errorf("got %v, want the remedy", err)
	}
	c.Pause()
	if _, err := newManager(c.Config, Options{Registry: prometheus.NewRegistry()}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("without a server: got %v", err)
	}
}
