package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/kube/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestParsePlan(t *testing.T) {
	limit := int32(3)
	good := v1alpha1.RunSpec{Schedule: "0 3 * * *", TimeZone: "Europe/Berlin", Deadline: "90m", HistoryLimit: &limit, Specimen: &v1alpha1.Specimen{ReadyWithin: "10s"}}
	p, err := parsePlan(&good)
	if err != nil || p.deadline != 90*time.Minute || p.ready != 10*time.Second {
		t.Fatalf("got %+v, %v", p, err)
	}
	// In the night of 29 March 2026 the clocks in Berlin went from 2 to 3.
	for from, want := range map[string]string{"2026-03-28T12:00:00Z": "2026-03-29T01:00:00Z", "2026-03-27T12:00:00Z": "2026-03-28T02:00:00Z"} {
		at, _ := time.Parse(time.RFC3339, from)
		if got := p.nextAfter(at).UTC().Format(time.RFC3339); got != want {
			t.Errorf("after %s comes %s, want %s", from, got, want)
		}
	}
	for _, tt := range []struct {
		spec v1alpha1.RunSpec
		want string
	}{
		{v1alpha1.RunSpec{Schedule: "61 * * * *"}, "spec.schedule: \"61 * * * *\""},
		{v1alpha1.RunSpec{Schedule: "TZ=0"}, "name the zone in spec.timeZone"},
		{v1alpha1.RunSpec{Schedule: "CRON_TZ=Asia/Tokyo 0 3 * * *"}, "name the zone in spec.timeZone"},
		{v1alpha1.RunSpec{Schedule: "@daily", TimeZone: "Mars/North"}, "spec.timeZone: \"Mars/North\""},
		{v1alpha1.RunSpec{Deadline: "soon"}, "spec.deadline: \"soon\""},
		{v1alpha1.RunSpec{Specimen: &v1alpha1.Specimen{ReadyWithin: "-1s"}}, "spec.specimen.readyWithin"},
	} {
		if _, err := parsePlan(&tt.spec); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want an error with %q", tt.spec, err, tt.want)
		}
	}
}

func TestLastTick(t *testing.T) {
	p, err := parsePlan(&v1alpha1.RunSpec{Schedule: "*/10 * * * *"})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]time.Duration{0: 0, 9*time.Minute + 59*time.Second: 0, 10 * time.Minute: 10 * time.Minute, 45 * time.Minute: 40 * time.Minute} {
		tick, due := p.lastTick(from, from.Add(after))
		if due != (want > 0) || due && tick.Sub(from) != want {
			t.Errorf("after %v: got %v, %t, want that after %v", after, tick, due, want)
		}
	}
	for _, tt := range []struct{ schedule, from, want string }{ // at 12:00:30
		{"* * * * *", "1970-01-01T00:00:00Z", "2026-03-01T12:00:00Z"},
		{"0 3 * * *", "2024-01-01T00:00:00Z", "2026-03-01T03:00:00Z"},
		{"* * * 1 *", "2024-01-01T00:00:00Z", "2026-01-31T23:59:00Z"},
		{"0 0 29 2 *", "1970-01-01T00:00:00Z", "2024-02-29T00:00:00Z"},
	} {
		p, err := parsePlan(&v1alpha1.RunSpec{Schedule: tt.schedule})
		if err != nil {
			t.Fatal(err)
		}
		since, err := time.Parse(time.RFC3339, tt.from)
		if err != nil {
			t.Fatal(err)
		}
		if tick, due := p.lastTick(since, from.Add(30*time.Second)); !due || tick.Format(time.RFC3339) != tt.want {
			t.Errorf("%q, last at %s: got %v, %t, want %s", tt.schedule, tt.from, tick, due, tt.want)
		}
	}
	never, err := parsePlan(&v1alpha1.RunSpec{Schedule: "0 0 30 2 *"})
	if err != nil {
		t.Fatal(err)
	}
	if tick, due := never.lastTick(from, from.AddDate(10, 0, 0)); due || !never.nextAfter(from).IsZero() {
		t.Errorf("on the 30th of February: got %v", tick)
	}
}

// TestClockAhead sets a clock right that was four years ahead: the schedule goes on. One that
// differs by seconds from that of the operator before begins no run twice.
func TestClockAhead(t *testing.T) {
	res := kinds()["LoadTest"]()
	*res.Plan() = v1alpha1.RunSpec{Schedule: "*/10 * * * *"}
	plan, err := parsePlan(res.Plan())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ now, want string }{
		{"2030-03-01T12:34:56Z", ""},
		{"2026-03-01T12:05:00Z", ""},
		{"2026-03-01T12:10:01Z", "2026-03-01T12:10:00Z"},
		{"2026-03-01T12:09:58Z", ""},
		{"2026-03-01T12:10:02Z", ""},
		{"2026-03-01T12:20:00Z", "2026-03-01T12:20:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, tt.now)
		if err != nil {
			t.Fatal(err)
		}
		p := &pass{res: res, status: res.Report(), plan: plan, now: now}
		if tick, due := p.missed(); due != (tt.want != "") || due && tick.Format(time.RFC3339) != tt.want {
			t.Errorf("at %s: got a run of %v, due %t, want one of %q", tt.now, tick, due, tt.want)
		}
	}
}

// TestTimes shares a cluster among what happens in time, by clocks of the tests' own.
func TestTimes(t *testing.T) {
	own := newPlace(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *place)
	}{{"schedule", testSchedule}, {"once", testOnce}, {"deadline", testDeadline}, {"deleted", testDeleted}} {
		t.Run(test.name, func(t *testing.T) { test.run(t, own.another(t)) })
	}
}

// testSchedule follows a schedule over skipped, missed and replaced runs.
func testSchedule(t *testing.T, own *place) {
	d := newDriver(t, own, "LoadTest")
	d.outcomes[d.namespace] = loadOutcome(10)
	d.create("tick", `{url: "http://a/", schedule: "*/10 * * * *", historyLimit: 2, deadline: 30m}`)
	res, wait := d.pass("tick")
	s := res.Report()
	if s.Active != nil || s.NextRun == nil || !s.NextRun.Equal(&metav1.Time{Time: d.now.Truncate(10 * time.Minute).Add(10 * time.Minute)}) || wait != 9*time.Minute+30*time.Second {
		t.Fatalf("got %+v and a wait of %v, want the run at 12:10 and nothing before", s, wait)
	}
	at := func(hour, minute int) { d.now = time.Date(2026, 3, 1, hour, minute, 1, 0, time.UTC) }
	at(12, 10)
	first := d.passUntil("tick", "running", runs).Active.Name
	at(12, 20) // it is still at it
	res, _ = d.pass("tick")
	if got := res.Report().Active.Name; got != first {
		t.Errorf("run %s goes on as %s", first, got)
	}
	if said := strings.Join(d.said(), "\n"); !strings.Contains(said, "Warning RunSkipped the run of 2026-03-01T12:20:00Z was skipped: "+first) {
		t.Errorf("the events are\n%s\nwant one for the run that was skipped", said)
	}
	d.playCoordinators()
	d.passUntil("tick", "at rest", rests)

	at(15, 37) // nobody was there for three hours: one run, not eighteen
	d.finishRun("tick")
	if res, _ = d.pass("tick"); res.Report().Active != nil || len(res.Report().History) != 2 {
		t.Errorf("got %+v, want two runs in all", res.Report())
	}

	d.change("tick", func(r *v1alpha1.RunSpec) { r.Suspend = true })
	at(15, 55)
	res, _ = d.pass("tick")
	if s := res.Report(); s.Active != nil || s.NextRun != nil || conditionOf(s, v1alpha1.Accepted).Reason != "Suspended" {
		t.Errorf("got %+v, want nothing while it is suspended", s)
	}
	d.change("tick", func(r *v1alpha1.RunSpec) { r.Suspend, r.ConcurrencyPolicy = false, v1alpha1.Replace })
	if res, _ = d.pass("tick"); res.Report().Active != nil {
		t.Error("a run begins that was due while the schedule was suspended")
	}
	at(16, 0)
	old := d.passUntil("tick", "running", runs).Active.Name
	at(16, 10)
	s = d.passUntil("tick", "another run", func(s *v1alpha1.Status) bool { return runs(s) && s.Active.Name != old })
	if run := s.History[0]; run.Name != old || run.Phase != v1alpha1.Failed || run.Clusters[0].Reason != "Replaced" || len(s.History) != 2 {
		t.Errorf("got the history %+v, want %s replaced and the oldest run gone", s.History, old)
	}
	var results corev1.ConfigMapList
	if err := d.admin.List(t.Context(), &results, client.InNamespace(d.namespace), client.HasLabels{labelOwner}); err != nil || len(results.Items) != 1 {
		t.Errorf("%d results are kept, %v, want that of the one run in the history that has one", len(results.Items), err)
	}
}

// finishRun takes a run that is due to its end.
func (d *driver) finishRun(name string) {
	d.t.Helper()
	before := d.passUntil(name, "running", runs).Active.Name
	d.playCoordinators()
	d.passUntil(name, "at rest", func(s *v1alpha1.Status) bool { return rests(s) && s.History[0].Name == before })
}

// testOnce runs once for each spec, and says what the schema could not know to be wrong.
func testOnce(t *testing.T, own *place) {
	d := newDriver(t, own, "LoadTest")
	d.outcomes[d.namespace] = loadOutcome(10)
	d.create("once", `{url: "http://a/"}`)
	d.finishRun("once")
	if res, wait := d.pass("once"); res.Report().Active != nil || wait != 0 {
		t.Errorf("got %+v, look again in %v, want rest", res.Report(), wait)
	}
	d.change("once", func(r *v1alpha1.RunSpec) { r.Agents = 1 })
	d.now = d.now.Add(time.Minute)
	d.finishRun("once")
	d.change("once", func(r *v1alpha1.RunSpec) { r.Schedule = "61 * * * *" })
	res, _ := d.pass("once")
	if c := conditionOf(res.Report(), v1alpha1.Accepted); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "spec.schedule") || len(res.Report().History) != 2 {
		t.Errorf("got %+v, want two runs and the reason why there is no third", res.Report())
	}
}

// testDeadline ends a run that does not end.
func testDeadline(t *testing.T, own *place) {
	d := newDriver(t, own, "LoadTest")
	d.create("long", `{url: "http://a/", deadline: 5m}`)
	begun := d.now
	d.passUntil("long", "started", func(s *v1alpha1.Status) bool {
		return s.Active != nil && s.Active.Clusters[0].Phase == v1alpha1.Running
	})
	d.makeCoordinators(func(s *corev1.PodStatus, running corev1.ContainerState) {
		s.InitContainerStatuses = []corev1.ContainerStatus{{Name: "tare", State: running}}
	})
	s := d.passUntil("long", "at rest", rests)
	if run := s.History[0]; run.Phase != v1alpha1.Failed || run.Clusters[0].Reason != reasonDeadline || d.now.Sub(begun) < 5*time.Minute || !run.Clusters[0].Removed {
		t.Errorf("got %+v, want it ended after its deadline and removed", run)
	}
	if left := d.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// testDeleted deletes a resource amid a run: nothing is left.
func testDeleted(t *testing.T, own *place) {
	d := newDriver(t, own, "Study")
	d.create("gone", "{study: nesting, specimen: "+shop+"}")
	d.passUntil("gone", "applied", func(s *v1alpha1.Status) bool {
		return s.Active != nil && s.Active.Clusters[0].Phase == v1alpha1.Preparing
	})
	d.playDeployments()
	d.passUntil("gone", "running", runs)
	if made := d.left(); len(made) != 5 {
		t.Errorf("made: %q, want a Job, a Secret, a Service of the run, and the specimen's two", made)
	}
	if err := d.admin.Delete(t.Context(), &v1alpha1.Study{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "gone"}}); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: d.namespace, Name: "gone"}
	for range 20 {
		if _, err := d.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if apierrors.IsNotFound(d.admin.Get(t.Context(), key, &v1alpha1.Study{})) {
			break
		}
		d.now = d.now.Add(time.Second)
	}
	if err := d.admin.Get(t.Context(), key, &v1alpha1.Study{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the resource: got %v, want that it is gone", err)
	}
	if left := d.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
