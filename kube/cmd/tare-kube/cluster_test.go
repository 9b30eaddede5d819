package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/jobs"
	"github.com/tarehq/tare/kube/testcluster"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) { testcluster.Main(m) }

const (
	shop  = "shop" // the namespace that the user has rights in
	image = "testcluster.local/tare:1"
	url   = "http://svc.shop/ping"
)

// lab is a cluster with two nodes, a service, and a user whose rights are those of jobs.Role
// in one namespace.
type lab struct {
	*testcluster.Cluster
	tare   string // the program
	dir    string // that it is started in
	images []testcluster.Image
}

func newLab(t *testing.T) *lab {
	t.Helper()
	nodes := testcluster.Options{Nodes: 2}
	testcluster.Need(t, nodes)
	bin := t.TempDir()
	l := &lab{tare: filepath.Join(bin, "tare"), dir: t.TempDir()}
	for _, p := range []struct{ dir, pkg, name string }{
		{"../../..", "./cmd/tare", "tare"}, {".", ".", "tare-kube"}, {"../../../arms", "./nethttp", "nethttp"},
	} {
		testcluster.Build(t, p.dir, p.pkg, filepath.Join(bin, p.name))
	}
	files := map[string]string{"usr/bin/tare": l.tare, "usr/bin/tare-kube": filepath.Join(bin, "tare-kube"), "usr/bin/nethttp": filepath.Join(bin, "nethttp")}
	addShell(t, files)
	nodes.Images = []testcluster.Image{{Name: image, Program: []string{"/usr/bin/tare"}, Files: files}}
	l.images = nodes.Images
	l.Cluster = testcluster.Start(t, nodes)
	role := jobs.Role(shop)
	meta := metav1.ObjectMeta{Namespace: shop, Name: "svc", Labels: map[string]string{"app": "svc"}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}},
		role,
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "dev"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "dev"}}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: meta.Labels}},
		&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "svc", Image: image, Command: []string{"/usr/bin/nethttp", "--routes", "ping"}, Env: []corev1.EnvVar{{Name: "TARE_ADDR", Value: "0.0.0.0:80"}},
		}}}},
	} {
		if err := l.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	l.Await("the service", time.Minute, func(ctx context.Context) error {
		pod := new(corev1.Pod)
		if err := l.Client.Get(ctx, client.ObjectKey{Namespace: shop, Name: "svc"}, pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("its pod is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
	return l
}

// addShell adds this machine's shell, which guards arms, and its libraries to an image.
func addShell(t *testing.T, files map[string]string) {
	t.Helper()
	out, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Fatalf("finding the libraries of /bin/sh: %v", err)
	}
	files["bin/sh"] = "/bin/sh"
	for _, word := range strings.Fields(string(out)) {
		if strings.HasPrefix(word, "/") {
			files[strings.TrimPrefix(word, "/")] = word
		}
	}
}

// text is what a program said until now.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// started is a tare that runs.
type started struct {
	cmd       *exec.Cmd
	out, errs text
}

// start starts tare as a user.
func (l *lab) start(t *testing.T, user string, args ...string) *started {
	t.Helper()
	all := append([]string{args[0], "--image", image, "--pod-cpu", "250m", "--pod-memory", "128Mi"}, args[1:]...)
	s := &started{cmd: exec.Command(l.tare, all...)}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = l.dir, &s.out, &s.errs
	s.cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(user, "default"))
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // it has ended where the test did not fail
	return s
}

// end waits for the exit status.
func (s *started) end(t *testing.T) int {
	t.Helper()
	late := time.AfterFunc(4*time.Minute, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	if err := s.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	t.Logf("tare %s\nended with %d and said\n%s", strings.Join(s.cmd.Args[1:], " "), s.cmd.ProcessState.ExitCode(), &s.errs)
	return s.cmd.ProcessState.ExitCode()
}

// pods are those of runs.
func (l *lab) pods(ctx context.Context, component string) ([]corev1.Pod, error) {
	pods := new(corev1.PodList)
	labels := client.MatchingLabels{"app.kubernetes.io/name": "tare"}
	if component != "" {
		labels["app.kubernetes.io/component"] = component
	}
	err := l.Client.List(ctx, pods, client.InNamespace(shop), labels)
	return pods.Items, err
}

// awaitLoad waits until tare and two agents run, and gives the load time to begin.
func (l *lab) awaitLoad() (coordinator corev1.Pod, agents []corev1.Pod) {
	l.Await("a load", time.Minute, func(ctx context.Context) error {
		found, err := l.pods(ctx, "coordinator")
		if err != nil || len(found) != 1 || len(found[0].Status.InitContainerStatuses) == 0 || found[0].Status.InitContainerStatuses[0].State.Running == nil {
			return fmt.Errorf("no coordinator runs: %w", err)
		}
		coordinator = found[0]
		agents, err = l.pods(ctx, "agent")
		if err != nil || len(agents) != 2 || agents[0].Status.Phase != corev1.PodRunning || agents[1].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("no two agents run: %w", err)
		}
		return nil
	})
	time.Sleep(4 * time.Second)
	return coordinator, agents
}

// wantNothingLeft waits until all that runs had is gone.
func (l *lab) wantNothingLeft() {
	l.Await("the end of all that a run had", 90*time.Second, func(ctx context.Context) error {
		mine := []client.ListOption{client.InNamespace(shop), client.MatchingLabels{"app.kubernetes.io/name": "tare"}}
		for _, list := range []client.ObjectList{new(batchv1.JobList), new(corev1.SecretList), new(corev1.ServiceList), new(corev1.PodList)} {
			if err := l.Client.List(ctx, list, mine...); err != nil {
				return err
			}
			data, err := json.Marshal(list)
			if err != nil {
				return err
			}
			var found struct {
				Items []struct{ Metadata struct{ Name string } }
			}
			if err := json.Unmarshal(data, &found); err != nil {
				return err
			}
			if len(found.Items) > 0 {
				return fmt.Errorf("%T has %v", list, found.Items)
			}
		}
		return nil
	})
}

// TestPods runs everything on one cluster, which takes its time to begin.
func TestPods(t *testing.T) {
	l := newLab(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *lab)
	}{
		{"load", testLoad}, {"flow", testFlow}, {"ab", testAB}, {"run", testRun}, {"operator", testOperator}, {"clusters", testClusters}, {"watch", testWatch}, {"no rights", testNoRights}, {"no image", testNoImage}, {"interrupted", testInterrupted},
		{"agent evicted", testAgentEvicted}, {"coordinator killed", testCoordinatorKilled}, {"owner gone", testOwnerGone},
		{"node partitioned", testPartition}, {"coordinator's node partitioned", testCoordinatorPartition},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, l)
			l.wantNothingLeft()
		})
	}
}

// testLoad loads a service by two pods, as one result.
func testLoad(t *testing.T, l *lab) {
	if err := os.Mkdir(filepath.Join(l.dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := l.start(t, "dev", "load", "--on", "k8s:"+shop, "--json", "-o", "out/result.json", "-r", "200", "-d", "2s", url)
	// Status 5 is that of a machine too busy to be on time.
	if status := s.end(t); status != 0 && status != 5 {
		t.Fatalf("status %d, want 0", status)
	}
	var got struct {
		Counts struct{ Scheduled, Answered int }
		Fleet  struct{ Agents []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(s.out.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, &s.out)
	}
	if got.Counts.Answered != 400 || len(got.Fleet.Agents) != 2 || !strings.Contains(got.Fleet.Agents[1].Name, "-agent-1.tare-load-") {
		t.Errorf("got %+v, want 400 answers to two agents", got)
	}
	if file, err := os.ReadFile(filepath.Join(l.dir, "out", "result.json")); err != nil || string(file) != s.out.String() {
		t.Errorf("the file that the pod wrote is not here: %v", err)
	}
	for _, node := range []string{"node-0", "node-1"} {
		if !strings.Contains(s.errs.String(), "on node "+node) {
			t.Errorf("nothing ran on %s", node)
		}
	}
}

// visit is one user's way to a service.
const visit = `users: {arrive: 20/s}
duration: 2s
flows:
  - name: visit
    steps: [{name: ping, url: /ping}, {name: again, url: /ping}]
`

// testFlow loads a service with the users of a file, from one pod.
func testFlow(t *testing.T, l *lab) {
	if err := os.WriteFile(filepath.Join(l.dir, "visit.yaml"), []byte(visit), 0o644); err != nil {
		t.Fatal(err)
	}
	s := l.start(t, "dev", "flow", "visit.yaml", "--on", "k8s:"+shop, "--base", "http://svc.shop", "--json")
	if status := s.end(t); status != 0 && status != 5 {
		t.Fatalf("status %d, want 0", status)
	}
	var got struct {
		Result struct {
			Sessions struct{ Completed int }
		}
	}
	if err := json.Unmarshal([]byte(s.out.String()), &got); err != nil || got.Result.Sessions.Completed != 40 {
		t.Errorf("got %+v, %v; want 40 sessions completed in\n%s", got, err, &s.out)
	}
}

// testAB compares two services by the loads of two pods. Both are the same one, so that little
// is decided.
func testAB(t *testing.T, l *lab) {
	s := l.start(t, "dev", "ab", "--on", "k8s:"+shop, "--budget", "2s", "--rate", "100", "--connections", "4", "--no-why", "--path", "/ping", "http://svc.shop", "http://svc.shop.svc.cluster.local")
	if status := s.end(t); status != 0 && status != 4 || !strings.Contains(s.out.String(), "Study ab: svc.shop.svc.cluster.local against svc.shop") {
		t.Errorf("status %d, want 0 or 4 and a report:\n%s", status, &s.out)
	}
}

// mine compares a program of the image with itself.
const mine = `name: mine
title: A program and itself
aa: true
arms:
  - {name: one, command: [/usr/bin/nethttp, --routes, ping]}
  - {name: two, command: [/usr/bin/nethttp, --routes, ping]}
control: one
workloads:
  - name: steady
    schedule: closed
    connections: 4
    targets: [{path: /ping, verify: {status: 200}}]
primary: {metric: cpu_per_request, workload: steady}
threshold: 5%
trial: {warm_up: 200ms, measure: 1s, slice: 100ms}
quick: {blocks: 6}
`

// testRun runs a study, whose arms are in the coordinator's pod, and has the run's folder here.
func testRun(t *testing.T, l *lab) {
	if err := os.WriteFile(filepath.Join(l.dir, "mine.yaml"), []byte(mine), 0o644); err != nil {
		t.Fatal(err)
	}
	s := l.start(t, "dev", "run", "--on=k8s:"+shop, "--quick", "--json", "mine.yaml")
	// On a machine that is too busy no trial may count, which is a result, too.
	if status := s.end(t); status != 0 && status != 4 && !strings.Contains(s.errs.String(), "no trial counts") {
		t.Fatalf("status %d, want 0 or that nothing was decided", status)
	}
	found, err := filepath.Glob(filepath.Join(l.dir, "runs", "*-mine", "agents.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("got the runs %q, %v; want one", found, err)
	}
	show := exec.Command(l.tare, "report", filepath.Dir(found[0]))
	show.Dir = l.dir
	if out, err := show.CombinedOutput(); err != nil || !strings.Contains(string(out), "one") {
		t.Errorf("tare report: %v\n%s", err, out)
	}
	if strings.Contains(s.errs.String(), "on the node of the arms") {
		t.Error("an agent runs beside the arms, though there is another node")
	}
}

func testNoRights(t *testing.T, l *lab) {
	s := l.start(t, "nobody", "load", "--on", "k8s:"+shop, "-d", "1s", url)
	status := s.end(t)
	for _, want := range []string{"in namespace shop you may not create jobs", "create pods/portforward", "kind: Role\n", "- pods/portforward\n"} {
		if status != 1 || !strings.Contains(s.errs.String(), want) {
			t.Errorf("status %d and %q, want 1 and %q", status, &s.errs, want)
		}
	}
}

// testNoImage has pods wait for an image that nobody has, until they are interrupted.
func testNoImage(t *testing.T, l *lab) {
	s := l.start(t, "dev", "load", "--on", "k8s:"+shop, "-d", "1s", url, "--image", "testcluster.local/none:1")
	l.Await("the reason", time.Minute, func(context.Context) error {
		if !strings.Contains(s.errs.String(), "none:1") {
			return fmt.Errorf("it says %q", &s.errs)
		}
		return nil
	})
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := s.end(t); status != interrupted {
		t.Errorf("status %d, want %d", status, interrupted)
	}
}

func testInterrupted(t *testing.T, l *lab) {
	s := l.start(t, "dev", "load", "--on", "k8s:"+shop, "-r", "50", "-d", "5m", url)
	l.awaitLoad()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := s.end(t); status != interrupted || !strings.Contains(s.errs.String(), "the pods are removed") {
		t.Errorf("status %d and %q, want %d", status, &s.errs, interrupted)
	}
}

// testAgentEvicted has the API evict a pod amid a load, as a drain does.
func testAgentEvicted(t *testing.T, l *lab) {
	s := l.start(t, "dev", "load", "--on", "k8s:"+shop, "-r", "50", "-d", "2m", url)
	_, agents := l.awaitLoad()
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: agents[0].Name}}
	if err := l.Client.SubResource("eviction").Create(t.Context(), &agents[0], eviction); err != nil {
		t.Fatal(err)
	}
	if status := s.end(t); status != 1 || !strings.Contains(s.errs.String(), "agent lost") || s.out.String() != "" {
		t.Errorf("status %d, %q and the result %q; want 1, the lost agent and no result", status, &s.errs, &s.out)
	}
}

func testCoordinatorKilled(t *testing.T, l *lab) {
	s := l.start(t, "dev", "load", "--on", "k8s:"+shop, "-r", "50", "-d", "2m", url)
	coordinator, _ := l.awaitLoad()
	if err := l.Client.Delete(t.Context(), &coordinator, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	if status := s.end(t); status != 1 || !strings.Contains(s.errs.String(), "the coordinator gave no result") {
		t.Errorf("status %d and %q, want 1 and why there is no result", status, &s.errs)
	}
}

// testOwnerGone deletes the coordinator's Job, which owns the rest, after whoever started the
// run was killed.
func testOwnerGone(t *testing.T, l *lab) {
	s := l.start(t, "dev", "load", "--on", "k8s:"+shop, "-r", "50", "-d", "5m", url)
	coordinator, _ := l.awaitLoad()
	kube := exec.Command("pkill", "-KILL", "-P", fmt.Sprint(s.cmd.Process.Pid)) // tare-kube, which this tare started
	if out, err := kube.CombinedOutput(); err != nil {
		t.Fatalf("killing tare-kube: %v %s", err, out)
	}
	if status := s.end(t); status != 1 {
		t.Errorf("status %d, want 1", status)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: coordinator.Labels["job-name"]}}
	if err := l.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
}

// testPartition cuts off the node of an agent whose coordinator is on the other one.
func testPartition(t *testing.T, l *lab) {
	s := l.start(t, "dev", "load", "--on", "k8s:"+shop, "-r", "50", "-d", "2m", url)
	coordinator, agents := l.awaitLoad()
	away := agents[0].Spec.NodeName
	if away == coordinator.Spec.NodeName {
		away = agents[1].Spec.NodeName
	}
	if away == coordinator.Spec.NodeName {
		t.Fatalf("all pods are on %s", away)
	}
	cut := time.Now()
	l.Partition(away, true)
	status := s.end(t)
	t.Logf("tare ended %v after the partition", time.Since(cut).Round(100*time.Millisecond))
	if status != 1 || !strings.Contains(s.errs.String(), "agent lost") || s.out.String() != "" {
		t.Errorf("status %d, %q and the result %q; want 1, the lost agent and no result", status, &s.errs, &s.out)
	}
	l.Partition(away, false)
}

// testCoordinatorPartition cuts off the node where tare itself runs.
func testCoordinatorPartition(t *testing.T, l *lab) {
	s := l.start(t, "dev", "load", "--on", "k8s:"+shop, "-r", "50", "-d", "2m", url)
	coordinator, _ := l.awaitLoad()
	cut := time.Now()
	l.Partition(coordinator.Spec.NodeName, true)
	status := s.end(t)
	t.Logf("tare ended %v after the partition", time.Since(cut).Round(100*time.Millisecond))
	if status != 1 || !strings.Contains(s.errs.String(), "the coordinator gave no result: the pod on node "+coordinator.Spec.NodeName) {
		t.Errorf("status %d and %q, want 1 and the node", status, &s.errs)
	}
	l.Partition(coordinator.Spec.NodeName, false)
}
