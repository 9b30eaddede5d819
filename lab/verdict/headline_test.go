package verdict_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tarehq/tare/lab/study"
	"github.com/tarehq/tare/lab/verdict"
	"github.com/tarehq/tare/stats"
	"github.com/tarehq/tare/stats/unit"
	"github.com/tarehq/tare/studies"
)

var (
	tellsCost = regexp.MustCompile(`(takes|is|by|within|highest [^ ]+,|lowest [^ ]+,) [±+-]?[0-9]`)
	tellsSure = regexp.MustCompile(`\((unbounded|[^()]+ to [^()]+)\)`)
)

// checkHeadline holds that a headline is short, and says the cost and how sure it is.
func checkHeadline(t *testing.T, a *verdict.Analysis) {
	t.Helper()
	got := a.Headline
	if n := len(strings.Fields(got)); n > 25 {
		t.Errorf("%d words: %s", n, got)
	}
	for _, m := range study.Metrics() {
		if strings.Contains(m.Name, "_") && strings.Contains(got, m.Name) {
			t.Errorf("it names %s as study files do: %s", m.Name, got)
		}
	}
	told := func(c *verdict.Comparison) bool { return c.Told() || len(a.Decisions()) == 1 }
	if slices.ContainsFunc(a.Decisions(), told) && (!tellsCost.MatchString(got) || !tellsSure.MatchString(got)) {
		t.Errorf("it lacks the cost or how sure that is: %s", got)
	}
}

// outcomes are the ways in which a comparison ends, by an arm's true effect, a trial's
// noise and the number of blocks.
var outcomes = []struct {
	ratio, noise float64
	blocks       int
}{{1.05, 0.004, 8}, {0.9, 0.004, 8}, {7.65, 0.004, 8}, {1, 0.002, 8}, {1.008, 0.0005, 12}, {1.02, 0.05, 8}, {1.02, 0.05, 3}}

// pairs are the arms of a study each with its control, with what the study claims of it.
func pairs(s *study.Study) (all []truth) {
	for _, arm := range s.Arms {
		if arm.Name == s.Control {
			continue
		}
		u := base()
		u.study.Control, u.study.Primary = s.Control, s.Primary
		u.study.Primary.Arm = arm.Name
		u.study.Arms = slices.DeleteFunc(slices.Clone(s.Arms), func(a study.Arm) bool { return a.Name != arm.Name && a.Name != s.Control })
		u.measure(s.Primary.Metric)
		workloads := []string{s.Primary.Workload}
		for _, c := range s.Claims {
			c.Checks = slices.DeleteFunc(slices.Clone(c.Checks), func(k study.Check) bool { return k.Kind != study.Effect || k.Arm != arm.Name })
			for _, k := range c.Checks {
				u.measure(k.Metric)
				workloads = append(workloads, k.Workload)
			}
			if len(c.Checks) > 0 {
				u.study.Claims = append(u.study.Claims, c)
			}
		}
		u.study.Workloads = slices.DeleteFunc(slices.Clone(s.Workloads), func(w study.Workload) bool { return !slices.Contains(workloads, w.Name) })
		all = append(all, u)
	}
	return all
}

// measure has trials tell a metric.
func (u *truth) measure(metric string) {
	m, _ := study.MetricNamed(metric)
	u.level[m.Name] = 30_000
	if m.Unit == unit.Share {
		u.level[m.Name] = 0.3
	}
}

// TestHeadlineOfEveryStudy makes runs of what each study compares, with its titles and claims.
func TestHeadlineOfEveryStudy(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIPPED: it has one goroutine, and .ci/run runs it without the race detector, too")
	}
	all, err := studies.All()
	if err != nil {
		t.Fatal(err)
	}
	published := 0
	for _, s := range all {
		for i, u := range pairs(s) {
			arm := u.study.Primary.Arm
			for j, o := range outcomes {
				if every := 2; (i+j)%every != 0 || len(u.study.Claims) == 0 && j > every {
					continue
				}
				u.noise, u.blocks = o.noise, o.blocks
				for metric := range u.level {
					u.effect(arm, metric, o.ratio)
				}
				a := analyse(t, u.run())
				checkHeadline(t, a)
				figures := figuresOf(a)
				if len(figures) == 0 || len(a.Decisions()) == 0 {
					continue
				}
				published++
				if !slices.ContainsFunc(figures, func(f string) bool { return strings.Contains(a.Headline, " The published "+f+" ") }) {
					t.Errorf("%s, %s: it lacks what was published (%q): %s", s.Name, arm, figures, a.Headline)
				}
			}
		}
	}
	if published < 100 {
		t.Errorf("something was published for %d of the runs", published)
	}
}

// figuresOf are the differences published for what a run of one arm compares.
func figuresOf(a *verdict.Analysis) (figures []string) {
	for _, c := range a.Claims {
		for _, r := range c.Checks {
			k := r.Check
			d := r.PublishedDifference
			switch {
			case k.PublishedDifference != nil:
				d = *k.PublishedDifference
			case k.PublishedArm != nil && k.PublishedAgainst != nil:
				d = *k.PublishedArm - *k.PublishedAgainst
			}
			if d != 0 && cmp.Or(k.Against, a.Manifest.Study.Control) == a.Manifest.Study.Control {
				figures = append(figures, verdict.Show(r.Metric, d))
			}
		}
	}
	return figures
}

// TestHeadlineOfEveryMetric has long titles, every metric as the one to decide on, the longest
// as what was published, and in one of two an arm without a pair, or more arms than are told of.
func TestHeadlineOfEveryMetric(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIPPED: it has one goroutine, and .ci/run runs it without the race detector, too")
	}
	for i, m := range study.Metrics() {
		if m.Attributed {
			continue
		}
		for j, o := range outcomes {
			u := base()
			u.arms(3)
			if i%2 == 0 {
				u.arms(8)
			}
			for k := range u.study.Arms {
				u.study.Arms[k].Title = "values as arguments, a context made and captured for each request"
			}
			u.study.Primary.Metric = m.Name
			u.measure(m.Name)
			u.measure("relative_mean")
			u.noise, u.blocks = o.noise, o.blocks
			for k := range u.study.Arms[1:] {
				u.effect(u.study.Arms[k+1].Name, m.Name, []float64{o.ratio, 1, 0.8}[(j+k)%3])
			}
			u.study.Claims = []study.Claim{{ID: "P1.long", Checks: []study.Check{
				{Kind: study.Effect, Metric: "relative_mean", Workload: "half", Arm: "a1", Direction: "more", PublishedDifference: ptr(372.123)},
			}}}
			r := u.run()
			for k := range r.Trials {
				if r.Trials[k].Arm == "a2" {
					r.Trials[k].Invalid = []string{"it was stopped"}
				}
			}
			a := analyse(t, r)
			checkHeadline(t, a)
			if i%2 == 1 && m.Name != "relative_mean" && len(a.Decisions()) > 0 && !strings.Contains(a.Headline, "The published 372 ") {
				t.Errorf("it lacks what was published: %s", a.Headline)
			}
		}
	}
}

// TestHeadlineHasDecidingInterval holds that a headline about one of several arms shows the interval
// at the level at which it was told apart as one of them, be it in the unit or as a share.
func TestHeadlineHasDecidingInterval(t *testing.T) {
	for _, arms := range []int{4, 8} {
		u := base()
		u.arms(arms)
		u.blocks, u.noise = 18, 0.02
		u.effect("a1", "cpu_per_request", 1.3)
		a := analyse(t, u.run())
		c := compared(t, a, "half", "cpu_per_request", "a1")
		by := c.Deciding()
		if !c.Told() || by.Level <= 1-c.Alpha {
			t.Fatalf("%d arms: %s at level %g, want one above %g", arms, c.Word(), by.Level, 1-c.Alpha)
		}
		want := by.Range(c)
		if arms < 6 {
			var d []float64
			of := a.Workload("half").Metric("cpu_per_request")
			for i, p := range of.Level("a1").Points {
				d = append(d, p.Value-of.Level("a0").Points[i].Value)
			}
			want = strings.NewReplacer("+", "", " µs", "").Replace(verdict.SpanSigned(c.Metric, stats.SignedRankInterval(d, 1-by.Level)))
		}
		if !strings.Contains(a.Headline, "("+want+")") {
			t.Errorf("%d arms: headline %q lacks %q, the interval that decided", arms, a.Headline, want)
		}
	}
}

// Before the first pair the headline names the metric in words, too.
func TestHeadlineWithoutPairs(t *testing.T) {
	r := base().run()
	r.Trials = r.Trials[:1]
	a := analyse(t, r)
	if checkHeadline(t, a); a.Headline != "Nothing is decided: no valid pair of trials for CPU per request in workload half yet." {
		t.Errorf("headline %q", a.Headline)
	}
}

// What a long reason says is cut, not the count of words.
func TestHeadlineOfLongReason(t *testing.T) {
	r := base().run()
	for i := range r.Trials {
		r.Trials[i].Invalid = []string{strings.Repeat("the generator was late and ", 9)}
	}
	a := analyse(t, r)
	if checkHeadline(t, a); !strings.HasPrefix(a.Headline, "Nothing is decided: 24 of 24 trials do not count, ") || !strings.HasSuffix(a.Headline, " …") {
		t.Errorf("headline %q", a.Headline)
	}
}
