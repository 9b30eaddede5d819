package v1alpha1_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"
	"github.com/tarehq/tare/kube/testcluster"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// start starts an API server, or skips the test.
func start(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testcluster.Start(t, testcluster.Options{Bare: true}).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// define applies a definition and waits until the API server knows it.
func define(t *testing.T, c client.Client, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	crd := parse(t, string(text))
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("test"), client.ForceOwnership); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(crd.GroupVersionKind())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), got); err != nil {
			t.Fatal(err)
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, condition := range conditions {
			switch m := condition.(map[string]any); {
			case m["type"] == "Established" && m["status"] == "True":
				return
			case m["type"] == "NonStructuralSchema" && m["status"] == "True":
				t.Fatalf("%s: %v", path, m["message"])
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not established: %v", path, conditions)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func crds() string { return filepath.Join("..", "..", "chart", "crds") }

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return &u
}

// create creates a resource of a kind with a spec. A definition that was just applied may not
// be served yet.
func create(ctx context.Context, t *testing.T, c client.Client, kind, name, spec string) error {
	t.Helper()
	u := parse(t, "apiVersion: tarehq.github.io/v1alpha1\nkind: "+kind+"\nmetadata: {name: "+name+", namespace: default}\nspec: "+spec)
	deadline := time.Now().Add(time.Minute)
	for {
		err := c.Create(ctx, u)
		unknown := meta.IsNoMatchError(err) || apierrors.IsNotFound(err) // the kind, or the namespace that each cluster has
		if err == nil || !unknown || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestRules has the API server refuse what makes no sense, with words that say why.
func TestRules(t *testing.T) {
	c := start(t)
	define(t, c, filepath.Join(crds(), "studies.yaml"))
	define(t, c, filepath.Join(crds(), "loadtests.yaml"))
	const load = "{url: 'http://shop:8080/', "
	for _, tt := range []struct{ kind, name, spec, want string }{
		{"Study", "a", "{study: nesting}", ""},
		{"Study", "b", "{studyFile: 'name: mine', quick: true, arms: [a, chi-5.1], budget: 10m, agents: 2, resources: {cpu: 2, memory: 1Gi}}", ""},
		{"Study", "c", "{study: nesting, schedule: '*/5 0-4 * JAN,FEB mon', timeZone: Europe/Berlin, concurrencyPolicy: Replace, historyLimit: 0, deadline: 1h30m}", ""},
		{"Study", "d", "{study: nesting, clusters: [{name: here}, {name: east, kubeconfigSecret: {name: east}, namespace: perf}]}", ""},
		{"Study", "e", "{study: nesting, specimen: {readyWithin: 90s, manifests: [{apiVersion: v1, kind: Service, metadata: {name: shop}, spec: {ports: [{port: 80}]}}]}}", ""},
		{"LoadTest", "f", load + "rate: 'ramp:100-5000/30s', connections: 10, duration: 30s, failIf: ['p99>50ms', 'errors > 0.1%', 'status_4xx>0', 'rate<1000']}", ""},
		{"LoadTest", "g", load + "resources: {cpu: 500m}}", ""},

		{"Study", "n1", "{}", "give one of study (a built-in one) and studyFile"},
		{"Study", "n2", "{study: a, studyFile: b}", "give one of study (a built-in one) and studyFile"},
		{"Study", "n3", "{study: '--help'}", "study is the name of a built-in study"},
		{"Study", "n4", "{study: a, arms: ['-x']}", "an arm's name has letters"},
		{"Study", "n5", "{study: a, budget: soon}", "budget is a duration from 10s to 24h"},
		{"Study", "n6", "{study: a, deadline: 5s}", "deadline is a duration from 1m to 24h"},
		{"Study", "n7", "{study: a, deadline: 999999h}", "deadline is a duration from 1m to 24h"},
		{"Study", "n8", "{study: a, schedule: 'at noon'}", "schedule has the five fields of cron"},
		{"Study", "n9", "{study: a, schedule: '@every 1s'}", "schedule has the five fields of cron"},
		{"Study", "n10", "{study: a, schedule: 'TZ=Asia/Tokyo 0 3 * * *'}", "schedule has the five fields of cron"},
		{"Study", "n11", "{study: a, timeZone: '../../etc/passwd'}", "timeZone is a name of the time zone database"},
		{"Study", "n12", "{study: a, concurrencyPolicy: Allow}", `supported values: "Forbid", "Replace"`},
		{"Study", "n13", "{study: a, historyLimit: 500}", "should be less than or equal to 20"},
		{"Study", "n14", "{study: a, agents: -1}", "should be greater than or equal to 0"},
		{"Study", "n15", "{study: a, resources: {cpu: none}}", "cpu is a quantity above 0"},
		{"Study", "n16", "{study: a, resources: {memory: '-1Gi'}}", "memory is a quantity above 0"},
		{"Study", "n17", "{study: a, clusters: [{name: x}, {name: x}]}", "Duplicate value"},
		{"Study", "n18", "{study: a, clusters: [{name: x}, {name: z}]}", "only one of the clusters may leave kubeconfigSecret out"},
		{"Study", "n19", "{study: a, clusters: [{name: x, namespace: kube-system}]}", "namespace needs kubeconfigSecret"},
		{"Study", "n20", "{study: a, clusters: [{name: X.Y, kubeconfigSecret: {name: s}}]}", "a cluster's name has lower-case letters"},
		{"Study", "n21", "{study: a, specimen: {manifests: []}}", "should have at least 1 items"},
		{"Study", "n22", "{study: a, specimen: {manifests: [{apiVersion: v1, kind: Service, metadata: {generateName: x-}}]}}", "each manifest has a name"},
		{"Study", "n23", "{study: a, specimen: {manifests: [{kind: Service, metadata: {name: x}}]}}", "apiVersion"},
		{"Study", "n24", "{study: a, image: 'a b'}", "image is the name of an image"},
		{"LoadTest", "n25", "{}", "spec.url: Required value"},
		{"LoadTest", "n26", "{url: '--journal=/x'}", "url begins with http:// or https://"},
		{"LoadTest", "n27", load + "rate: '-1'}", "rate is one of tare load"},
		{"LoadTest", "n28", load + "failIf: ['slow']}", "a threshold is a figure"},
		{"LoadTest", "n29", load + "connections: 0}", "should be greater than or equal to 1"},
		{"LoadTest", "1-is-no-name", load + "duration: 5s}", "metadata.name has at most 30"},
		{"LoadTest", "a-name-that-is-longer-than-thirty", load + "duration: 5s}", "metadata.name has at most 30"},
	} {
		err := create(t.Context(), t, c, tt.kind, tt.name, tt.spec)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s %s: %v, want it created", tt.kind, tt.spec, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %s: got %v, want an error with %q", tt.kind, tt.spec, err, tt.want)
		}
	}
	readAll(t, c)
}

// readAll reads what was created by the types: they have to understand all that passed.
func readAll(t *testing.T, c client.Client) {
	t.Helper()
	var studies v1alpha1.StudyList
	var loads v1alpha1.LoadTestList
	if err := errors.Join(c.List(t.Context(), &studies), c.List(t.Context(), &loads)); err != nil || len(studies.Items) != 5 || len(loads.Items) != 2 {
		t.Fatalf("read %d studies and %d load tests, %v, want 5 and 2", len(studies.Items), len(loads.Items), err)
	}
	for _, s := range studies.Items {
		if s.Spec.ConcurrencyPolicy == "" || s.Spec.HistoryLimit == nil {
			t.Errorf("%s: the defaults are missing in %+v", s.Name, s.Spec.RunSpec)
		}
		if s.Name == "b" && (s.Spec.Resources.CPU.String() != "2" || s.Spec.Resources.Memory.String() != "1Gi") {
			t.Errorf("got the resources %+v, want 2 CPUs and 1Gi", s.Spec.Resources)
		}
		if s.Name == "e" && !strings.Contains(string(s.Spec.Specimen.Manifests[0].Raw), `"port":80`) {
			t.Errorf("got the manifest %s, want it whole", s.Spec.Specimen.Manifests[0].Raw)
		}
	}
}

// TestUpgrade stores a resource by an earlier definition, puts that of now in its place, and
// reads and changes the resource.
func TestUpgrade(t *testing.T) {
	c := start(t)
	define(t, c, filepath.Join("testdata", "studies-earlier.yaml"))
	if err := create(t.Context(), t, c, "Study", "old", "{study: nesting, quick: true, repeat: 3, schedule: every day}"); err != nil {
		t.Fatal(err)
	}
	define(t, c, filepath.Join(crds(), "studies.yaml"))
	key := client.ObjectKey{Namespace: "default", Name: "old"}
	var got v1alpha1.Study
	deadline := time.Now().Add(time.Minute)
	for got.Spec.HistoryLimit == nil && time.Now().Before(deadline) { // a default of the new definition
		if err := c.Get(t.Context(), key, &got); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if got.Spec.HistoryLimit == nil || *got.Spec.HistoryLimit != 5 || got.Spec.Study != "nesting" || !got.Spec.Quick || got.Spec.Schedule != "every day" {
		t.Fatalf("got %+v, want what was stored, and the new defaults", got.Spec)
	}
	// What the new rules refuse stays until it is changed; the status can be written meanwhile.
	got.Status.Verdict = "none yet"
	if err := c.Status().Update(t.Context(), &got); err != nil {
		t.Error("writing the status:", err)
	}
	got.Spec.Schedule = "every night"
	if err := c.Update(t.Context(), &got); err == nil || !strings.Contains(err.Error(), "schedule has the five fields of cron") {
		t.Errorf("writing another wrong schedule: got %v, want the rule", err)
	}
	if err := c.Get(t.Context(), key, &got); err != nil || got.Status.Verdict != "none yet" {
		t.Fatalf("got %+v, %v, want the status", got.Status, err)
	}
	got.Spec.Schedule = "0 3 * * *"
	if err := c.Update(t.Context(), &got); err != nil {
		t.Error("writing a right schedule:", err)
	}
}
