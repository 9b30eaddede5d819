package lab_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tarehq/tare/lab"
	"github.com/tarehq/tare/lab/arm"
	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/study"
)

// programs is the folder of the arms that tests build of this module's packages.
var programs string

// moduleArms builds such arms, each once for all tests.
func moduleArms() *arm.Builder { return &arm.Builder{ModuleDir: "..", Cache: programs} }

// TestMain serves as an arm, or loads one, when a study of these tests starts
// this program again.
func TestMain(m *testing.M) {
	if mode := os.Getenv("LAB_TEST_ARM"); mode != "" {
		serve(mode)
		return
	}
	if os.Getenv("LAB_TEST_GENERATOR") != "" {
		generate(os.Args[1:])
		return
	}
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// serve answers "hello" until it is told otherwise. A mode may be followed by a
// file: the first process that finds it missing makes it and is good.
func serve(mode string) {
	mode, mark, marked := strings.Cut(mode, ":")
	if f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600); marked && err == nil {
		f.Close()
		mode = "ok"
	}
	switch mode {
	case "orphan", "forks", "burns":
		orphan()
	case "recovers":
		mode = recovering(mark)
	}
	if mode == "gone" {
		fmt.Fprintln(os.Stderr, "served once")
		os.Exit(3)
	}
	ln, err := net.Listen("tcp", os.Getenv("TARE_ADDR"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	asked := make(chan struct{}, 1<<20)
	var first sync.Once
	var begun time.Time
	after, d, freezes := strings.Cut(mode, " freezes ")
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first.Do(func() { begun = time.Now() })
		if freezes {
			time.Sleep(frozen(after, d, time.Since(begun)))
		}
		switch mode {
		case "closes":
			w.Header().Set("Connection", "close")
		case "turns":
			if asked <- struct{}{}; len(asked) > 20 {
				fmt.Fprint(w, "hello, but wrong")
				return
			}
		case "defers":
			owed.Add(1)
		case "other":
			fmt.Fprint(w, "hullo")
			return
		case "wrong":
			w.WriteHeader(http.StatusTeapot)
		case "reads routes":
			if time.Since(begun) < 300*time.Millisecond {
				w.WriteHeader(http.StatusNotFound)
				return
			}
		case "aborts":
			if asked <- struct{}{}; len(asked)%12 == 0 {
				panic(http.ErrAbortHandler)
			}
		case "dies":
			if asked <- struct{}{}; len(asked) > 3 {
				end(ln, w)
			}
		}
		fmt.Fprint(w, "hello")
	})
	if log, ok := strings.CutPrefix(mode, "logs"); ok {
		h = logging(log == " late")
	}
	s := &http.Server{Handler: h}
	if mode == "tires" {
		s.IdleTimeout = 20 * time.Millisecond
	}
	if mode == "declines" {
		go decline()
	}
	if mode == "defers" {
		s.ConnState = payLater
	}
	fmt.Fprintln(os.Stderr, s.Serve(ln))
	if mode == "dies" {
		time.Sleep(time.Minute) // for end, in a handler
	}
}

// end is how a process on a busy machine dies: its sockets are closed before anybody sees that.
func end(ln net.Listener, w http.ResponseWriter) {
	ln.Close()
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		c.Close()
	}
	time.Sleep(200 * time.Millisecond)
	os.Exit(3)
}

// recovering is the mode of an arm of which four processes die, as the length of a file counts.
func recovering(mark string) string {
	f, err := os.OpenFile(mark, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	_, werr := f.WriteString(".")
	info, err := f.Stat()
	if err := errors.Join(werr, err); err != nil {
		panic(err)
	}
	if info.Size() <= 4 {
		return "dies"
	}
	return "ok"
}

// frozen is how long an arm that freezes so long after its first request still does.
func frozen(after, long string, at time.Duration) time.Duration {
	from, err := time.ParseDuration(after)
	d, err2 := time.ParseDuration(long)
	if err := errors.Join(err, err2); err != nil {
		panic(err)
	}
	if at < from {
		return 0
	}
	return max(0, from+d-at)
}

// decline answers every question as an arm does that does not know it.
func decline() {
	l, err := net.Listen("unix", os.Getenv("TARE_CONTROL"))
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer c.Close()
			for lines := bufio.NewScanner(c); lines.Scan(); {
				fmt.Fprintln(c, `{"error":"not known here"}`)
			}
		}()
	}
}

// logging answers, and writes the log of it when the process is told to end: after
// longer than an arm is given, or never.
func logging(late bool) http.HandlerFunc {
	var mu sync.Mutex
	log := "arrival_unix_ns,departure_unix_ns\n"
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		if <-told; !late {
			return
		}
		time.Sleep(1500 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if err := os.WriteFile("requests.csv", []byte(log), 0o600); err != nil {
			panic(err)
		}
		os.Exit(0)
	}()
	return func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now().UnixNano()
		log += fmt.Sprintf("%d,%d\n", now, now)
		fmt.Fprint(w, "ok")
	}
}

func testArm(t *testing.T, name, mode string) study.Arm {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return study.Arm{Name: name, Command: []string{exe, name}, Env: []string{"LAB_TEST_ARM=" + mode}}
}

// small is a study of two arms whose trials take a fraction of a second.
func small(t *testing.T, modes ...string) *study.Study {
	t.Helper()
	target := study.Target{Path: "/", Verify: study.Verify{Status: 200, Contains: "hello"}}
	s := &study.Study{
		Name: "small", Control: "a", Twin: true,
		Workloads: []study.Workload{
			{Name: "closed", Schedule: "closed", Connections: 4, Targets: []study.Target{target}},
			{Name: "open", Schedule: "constant", Rate: study.Rate{Share: 0.2}, Connections: 8, Targets: []study.Target{target}},
		},
		Primary: study.Primary{Metric: "cpu_per_request", Workload: "closed"},
		Trial:   study.Trial{WarmUp: 20 * time.Millisecond, Measure: 120 * time.Millisecond, Slice: 10 * time.Millisecond},
	}
	for i, mode := range modes {
		s.Arms = append(s.Arms, testArm(t, string(rune('a'+i)), mode))
	}
	return s
}

func options(t *testing.T, s *study.Study) lab.Options {
	t.Helper()
	return lab.Options{
		Study: s, Builder: &arm.Builder{Cache: t.TempDir()}, Dir: filepath.Join(t.TempDir(), "run"),
		Seed: 7, Blocks: 2, About: record.Manifest{ID: "small", Tare: "test"},
	}
}

func TestRun(t *testing.T) {
	s := small(t, "ok", "ok")
	o := options(t, s)
	stages := map[lab.Stage]int{}
	o.Progress = func(e lab.Event) { stages[e.Stage]++ }
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if run.Manifest.Outcome != "cap" || run.Manifest.Seed != 7 || run.Manifest.Ended.IsZero() || run.Manifest.Rates["open"] <= 0 {
		t.Errorf("manifest: outcome %q, seed %d, ended %v, rates %v", run.Manifest.Outcome, run.Manifest.Seed, run.Manifest.Ended, run.Manifest.Rates)
	}
	plan := study.NewPlan(s, 7, 2)
	planned := plan[:0:0]
	for _, tr := range run.Trials {
		if tr.Attempt == 0 {
			planned = append(planned, study.Cell{Block: tr.Block, Workload: tr.Workload, Arm: tr.Arm, Twin: tr.Twin})
		}
		if len(tr.Invalid) > 0 {
			continue
		}
		for _, metric := range []string{"throughput", "service_p50", "errors", "startup", "answer_bytes"} {
			if v, ok := tr.Metrics[metric]; !ok || v < 0 {
				t.Errorf("trial %d of %s: %s = %v, %v", tr.Seq, tr.Arm, metric, v, ok)
			}
		}
	}
	if fmt.Sprint(planned) != fmt.Sprint(plan) {
		t.Errorf("trials in order\n%v, planned\n%v", planned, plan)
	}
	for _, stage := range []lab.Stage{lab.Building, lab.Piloting, lab.Running, lab.Ended, lab.Looking} {
		if stages[stage] == 0 {
			t.Errorf("no event of stage %q", stage)
		}
	}
}

// TestInterruptAndResume stops a run within a trial, after the fourth, and goes on
// with it: what was cut short is no trial, and the rates are those of before.
func TestInterruptAndResume(t *testing.T) {
	s := small(t, "ok", "ok")
	s.Workloads, s.Primary.Workload = s.Workloads[1:], "open"
	s.Trial.Measure = 500 * time.Millisecond
	o := options(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended, whole := 0, 0
	o.Progress = func(e lab.Event) {
		switch {
		case e.Stage == lab.Ended:
			ended++
		case e.Stage == lab.Loading && ended >= 4 && whole == 0:
			whole = ended
			cancel()
		}
	}
	run, err := lab.Run(ctx, o)
	if !errors.Is(err, context.Canceled) || run == nil || len(run.Trials) != whole || run.Manifest.Outcome != "interrupted" {
		t.Fatalf("interrupted after %d trials: %v, %+v", whole, err, run)
	}
	rate := run.Manifest.Rates["open"]
	o.Resume = true
	o.Progress = func(e lab.Event) {
		if e.Stage == lab.Piloting {
			t.Errorf("resumed, it tries %s again: the rates would be others", e.Arm)
		}
	}
	run, err = lab.Run(t.Context(), o)
	if err != nil || run.Manifest.Outcome != "cap" || rate <= 0 || run.Manifest.Rates["open"] != rate {
		t.Fatalf("resumed run: %v, a rate of %v, before it was %v", err, run.Manifest.Rates, rate)
	}
	blocks := map[int]bool{}
	for i, tr := range run.Trials {
		if tr.Seq != i {
			t.Errorf("trial %d has sequence number %d", i, tr.Seq)
		}
		if tr.Attempt == 0 {
			blocks[tr.Block] = true
		}
	}
	if len(blocks) != 2 || len(run.Trials) < 7 {
		t.Errorf("%d planned blocks and %d trials after resuming, want 2 and at least 7", len(blocks), len(run.Trials))
	}
}

// TestResumeRefusesOthers does not go on with another program in an arm's place, nor
// without one.
func TestResumeRefusesOthers(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		now        map[string]string
	}{
		{"the same", "", map[string]string{"a": "one", "b": "two"}},
		{"another", "arm b: it is no longer the same program", map[string]string{"a": "one", "b": "other"}},
		{"none", "arm b: it cannot be built any more", map[string]string{"a": "one"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := record.Create(filepath.Join(t.TempDir(), "run"), record.Manifest{})
			if err != nil {
				t.Fatal(err)
			}
			err = lab.SameAs(w, map[string]string{"a": "one", "b": "two"}, tt.now)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// What goes on elsewhere, or by another tare, says so.
func TestResumeElsewhere(t *testing.T) {
	s := small(t, "ok", "ok")
	s.Workloads = s.Workloads[:1]
	o := options(t, s)
	o.Blocks = 1
	o.About.Env = []record.Fact{{Name: "cpu", Value: "Z80"}, {Name: "kernel", Value: "6.1"}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Progress = func(e lab.Event) {
		if e.Stage == lab.Ended {
			cancel()
		}
	}
	if _, err := lab.Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	o.Resume, o.Progress = true, nil
	o.About = record.Manifest{Tare: "other", Env: []record.Fact{{Name: "cpu", Value: "6502"}, {Name: "kernel", Value: "6.1"}}}
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(run.Manifest.Warnings, "\n")
	for _, want := range []string{"from trial 1 on, tare was other, not test", "from trial 1 on, the cpu was 6502, not Z80"} {
		if !strings.Contains(said, want) {
			t.Errorf("got the warnings %q, want %q", said, want)
		}
	}
	if strings.Contains(said, "kernel") {
		t.Errorf("got the warnings %q, want none of the kernel, which is the same", said)
	}
}

// Tests that run beside another, here and below, mostly wait for arms, and judge no time.
func TestRefusals(t *testing.T) {
	t.Parallel()
	same := small(t, "ok", "ok")
	same.Arms[1].Command = same.Arms[0].Command
	missing := small(t, "ok", "ok")
	missing.Arms[1].Command = []string{"no-such-program-of-tare"}
	tests := []struct {
		name  string
		study *study.Study
		want  []string // in the error
	}{
		{"wrong answer", small(t, "ok", "wrong"), []string{"arm b", "status 418, want 200"}},
		{"same program", same, []string{"a and b", "twin: true"}},
		{"no program", missing, []string{"arm b", "no-such-program-of-tare"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := lab.Run(t.Context(), options(t, tt.study))
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want it to say %q", err, want)
				}
			}
		})
	}
}

// TestNeeds leaves out, by name, an arm that may be missing.
func TestNeeds(t *testing.T) {
	t.Parallel()
	s := small(t, "ok", "ok", "ok")
	s.Workloads = s.Workloads[:1]
	s.Arms[2].Command = []string{"no-such-program-of-tare"}
	s.Arms[2].Needs = []string{"no-such-program-of-tare"}
	o := options(t, s)
	o.Blocks = 1
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if why := run.Manifest.LeftOut["c"]; !strings.Contains(why, "no-such-program-of-tare") {
		t.Errorf("left out: %v", run.Manifest.LeftOut)
	}
}

// A control whose only rival is left out is not measured, whatever lists its
// workloads have.
func TestControlAlone(t *testing.T) {
	for _, among := range [][]string{nil, {"a", "b"}, {"b", "a"}} {
		s := small(t, "ok", "ok")
		s.Twin = len(among) > 0 && among[0] == "b" // which is nothing to compare with either
		for i := range s.Workloads {
			s.Workloads[i].Arms = among
		}
		s.Arms[1].Command = []string{"no-such-program-of-tare"}
		s.Arms[1].Needs = []string{"no-such-program-of-tare"}
		o := options(t, s)
		run, err := lab.Run(t.Context(), o)
		if want := "no arm is left to compare a with: building arm b: "; run != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("workloads of %q: got a run %t and error %v, want none and %q", among, run != nil, err, want)
		}
		if _, err := os.Stat(o.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("workloads of %q: a folder is left: %v", among, err)
		}
	}
}

// What was measured is there although the run's folder is not any more.
func TestFolderVanishes(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{".", "trials.jsonl"} {
		s := small(t, "ok", "ok")
		s.Workloads = s.Workloads[:1]
		o := options(t, s)
		o.Progress = func(e lab.Event) {
			if e.Stage == lab.Ended && e.Trial == 2 {
				if err := os.RemoveAll(filepath.Join(o.Dir, gone)); err != nil {
					t.Error(err)
				}
			}
		}
		run, err := lab.Run(t.Context(), o)
		if !errors.Is(err, fs.ErrNotExist) || run == nil {
			t.Fatalf("%s is removed after two trials: got a run %t and error %v, want one and that it is not there", gone, run != nil, err)
		}
		if len(run.Trials) != 2 {
			t.Errorf("%s is removed after two trials: got %d, want both", gone, len(run.Trials))
		}
	}
}

// TestArmDies records the trials of an arm that dies under load as invalid,
// with the reason, and tries again a bounded number of times.
func TestArmDies(t *testing.T) {
	t.Parallel()
	s := small(t, "ok", "dies:"+filepath.Join(t.TempDir(), "mark"))
	s.Workloads = s.Workloads[:1]
	o := options(t, s)
	o.Blocks = 1
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run, err := lab.Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, tr := range run.Trials {
		if tr.Arm != "b" {
			continue
		}
		if tried++; len(tr.Invalid) == 0 {
			t.Errorf("trial %d of an arm that dies is valid: %v", tr.Seq, tr.Metrics)
		}
		if why := strings.Join(tr.Invalid, "; "); !strings.Contains(why, "under load: the arm ended: exit status 3") {
			t.Errorf("trial %d of an arm that dies is invalid since %q, want how it ended", tr.Seq, why)
		}
	}
	if tried < 2 || tried > 4 {
		t.Errorf("the arm that dies was tried %d times, want 2 to 4", tried)
	}
}

// Cells are run again as long as that gains pairs, also more than three times.
func TestMakesUpForAll(t *testing.T) {
	t.Parallel()
	s := small(t, "ok", "recovers:"+filepath.Join(t.TempDir(), "mark"))
	s.Workloads = s.Workloads[:1]
	o := options(t, s)
	o.Blocks, o.Budget = 4, time.Hour
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	died, valid := 0, 0
	for _, tr := range run.Trials {
		switch {
		case tr.Arm != "b" || tr.Block < 0:
		case len(tr.Invalid) > 0:
			died++
		default:
			valid++
		}
	}
	if died < 4 || valid < 4 {
		t.Errorf("the arm has %d trials that do not count and %d that do, want 4 of each at least", died, valid)
	}
}

// A trial in which requests fail does not count, and the reason is that they do.
func TestArmThatFails(t *testing.T) {
	run, err := lab.Run(t.Context(), options(t, small(t, "ok", "aborts")))
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, tr := range run.Trials {
		if tr.Arm != "b" || tr.Metrics["errors"] == 0 { // on a busy machine a trial may be over before a request fails
			continue
		}
		why := strings.Join(tr.Invalid, "\n")
		if strings.Contains(why, "no request was answered within the measured part") { // likewise
			continue
		}
		failed++
		if !strings.Contains(why, "failed, more than 0.1 %") || strings.Contains(why, "Little") {
			t.Errorf("trial %d, %s: %.1f %% of the requests failed, invalid for %q", tr.Seq, tr.Workload, 100*tr.Metrics["errors"], why)
		}
	}
	if failed == 0 {
		t.Error("no trial had a failing request")
	}
}

// TestIdle measures what an idle connection takes of an arm that keeps it, and
// has no figure for arms that close it, be it at once or later.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := small(t, "ok", "closes", "tires")
	s.Workloads = s.Workloads[:1]
	s.Workloads[0].Idle = 200
	o := options(t, s)
	o.Blocks = 1
	run, err := lab.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"b": "closes a connection after its first answer", "c": "of 200 idle connections the arm closed "}
	for _, tr := range run.Trials {
		v, measured := tr.Metrics["idle_connection"]
		if tr.Arm == "a" && (v < 2<<10 || v > 1<<20) {
			t.Errorf("trial %d: a connection takes %v bytes, want at least a goroutine's stack and less than 1 MiB", tr.Seq, v)
		}
		if why := strings.Join(tr.Invalid, "; "); tr.Arm != "a" && (measured || !strings.Contains(why, want[tr.Arm])) {
			t.Errorf("trial %d of %s: got %v, %q, want no figure and %q", tr.Seq, tr.Arm, v, why, want[tr.Arm])
		}
	}
}

// TestArmDoesNotComeBack ends the run when an arm is no longer there, and does
// not wait for it in every trial.
func TestArmDoesNotComeBack(t *testing.T) {
	t.Parallel()
	s := small(t, "ok", "gone:"+filepath.Join(t.TempDir(), "mark"))
	s.Workloads = s.Workloads[:1]
	o := options(t, s)
	o.Blocks = 30
	run, err := lab.Run(t.Context(), o)
	if !errors.Is(err, lab.ErrArm) || !strings.Contains(err.Error(), "not ready for 3 trials in a row") || !strings.Contains(err.Error(), "served once") {
		t.Errorf("got the error %v", err)
	}
	if run == nil || run.Manifest.Outcome != "interrupted" || len(run.Trials) < 4 {
		t.Errorf("got the run %+v, want what was measured before", run)
	}
}

// TestArmThatDeclines: what an arm does not know it says, and is measured without.
func TestArmThatDeclines(t *testing.T) {
	t.Parallel()
	s := small(t, "ok", "declines")
	s.Workloads = s.Workloads[:1]
	s.Workloads[0].Loop, s.Workloads[0].Lines, s.Workloads[0].Live = 10*time.Millisecond, true, true
	run, err := lab.Run(t.Context(), options(t, s))
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, tr := range run.Trials {
		if why := strings.Join(tr.Invalid, "; "); strings.Contains(why, "not known here") {
			t.Errorf("trial %d of %s does not count: %s", tr.Seq, tr.Arm, why)
		}
		told = told || strings.Contains(strings.Join(tr.Warnings, "; "), "no in-process loop: asking the arm for loop: not known here")
	}
	if !told {
		t.Error("no trial says that the arm has no loop")
	}
}

// TestNothingMeasured wants neither a run nor a folder where a study cannot be
// measured at all.
func TestNothingMeasured(t *testing.T) {
	t.Parallel()
	tiny := small(t, "ok", "ok")
	tiny.Workloads[1].Rate.Share = 1e-9
	many := small(t, "ok", "ok")
	many.Workloads[0].Connections = 1 << 30
	tests := []struct {
		name  string
		study *study.Study
		want  string // in the error
	}{
		{"dies in the pilot", small(t, "ok", "dies"), "the arm ended: exit status 3"},
		{"no rate", tiny, "workload open: 1e-07 % of the slowest arm's"},
		{"too many connections", many, "file descriptors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, tt.study)
			run, err := lab.Run(t.Context(), o)
			if run != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v, %v, want no run and an error with %q", run, err, tt.want)
			}
			if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the run's folder: got %v, want none", err)
			}
		})
	}
}

func TestCancelledBeforehand(t *testing.T) {
	s := small(t, "ok", "ok")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lab.Run(ctx, options(t, s)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it began: %v", err)
	}
}
