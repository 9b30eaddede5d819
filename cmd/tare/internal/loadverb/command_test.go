package loadverb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/cmd/tare/internal/cli"
	"github.com/tarehq/tare/doc"

	"charm.land/lipgloss/v2"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
)

// statusOf is the exit status of an error of the verb.
func statusOf(err error) int {
	if f, ok := errors.AsType[*cli.Failure](err); ok {
		return f.Status
	}
	return 0
}
func TestVerdictOf(t *testing.T) {
	failed, unknown := outcome{failed: true}, outcome{err: load.ErrInconclusive}
	onlyErrors := []error{fmt.Errorf("%w: check the URL", load.ErrOnlyErrors)}
	dropped := load.Counts{Scheduled: 10, Dropped: 1}
	for _, c := range []struct {
		name     string
		res      load.Result
		outcomes []outcome
		open     bool
		want     int
	}{
		{"held", load.Result{}, []outcome{{}}, true, 0},
		{"failed", load.Result{}, []outcome{{}, failed, unknown}, true, cli.ExitThreshold},
		{"failed after inconclusive", load.Result{}, []outcome{unknown, failed}, true, cli.ExitThreshold},
		{"inconclusive", load.Result{}, []outcome{{}, unknown}, true, cli.ExitInconclusive},
		{"dropped", load.Result{Counts: dropped}, []outcome{unknown}, true, cli.ExitNotOffered},
		{"dropped, and failed", load.Result{Counts: dropped}, []outcome{failed}, true, cli.ExitThreshold},
		{"late, and failed", load.Result{Generator: load.Generator{Bound: true}}, []outcome{failed}, true, cli.ExitThreshold},
		{"none verified", load.Result{Counts: load.Counts{Scheduled: 2, Status: [6]uint64{2: 2}, Unverified: 2}}, []outcome{unknown}, false, cli.ExitFailed},
		{"some verified", load.Result{Counts: load.Counts{Scheduled: 2, Status: [6]uint64{2: 2}, Unverified: 1}}, nil, false, 0},
		{"late", load.Result{Generator: load.Generator{Bound: true}}, nil, true, cli.ExitNotOffered},
		{"busy in the closed loop", load.Result{Generator: load.Generator{Bound: true}}, nil, false, 0},
		{"all errors", load.Result{Warnings: onlyErrors}, nil, false, cli.ExitFailed},
		{"all errors, and late", load.Result{Warnings: onlyErrors, Generator: load.Generator{Bound: true}}, nil, true, cli.ExitFailed},
		{"all errors, which a threshold is about", load.Result{Warnings: onlyErrors, Generator: load.Generator{Bound: true}}, []outcome{failed}, true, cli.ExitThreshold},
		{"an error among answers", load.Result{Counts: load.Counts{Scheduled: 2, Status: [6]uint64{2: 1, 4: 1}}}, nil, false, 0},
		{"interrupted", load.Result{Ended: "interrupted", Counts: dropped}, []outcome{failed}, true, cli.ExitInterrupted},
	} {
		if got := statusOf((&summary{res: &c.res, outcomes: c.outcomes, open: c.open}).verdict()); got != c.want {
			t.Errorf("%s: got status %d, want %d", c.name, got, c.want)
		}
	}
}

// The hint names what kept the rate from being offered: few connections, few threads, or
// other programs.
func TestHintOfRateNotOffered(t *testing.T) {
	late := hist.New()
	late.RecordN(int64(5*time.Millisecond), 1000)
	for _, tt := range []struct {
		cpu    time.Duration // in a second
		waited bool
		want   string
		not    string
	}{
		{time.Second / 10, false, "stop other programs", "--threads"},
		{time.Second / 10, true, "more --connections", "--threads"},
		{9 * time.Second / 10, false, "--threads", "other programs"},
	} {
		const said = "the rate was not offered on time: 1 % of the requests were sent 5.00 ms or more late"
		res := &load.Result{Elapsed: time.Second, Threads: 1, Generator: load.Generator{CPU: tt.cpu, Late: late, Bound: true}, Connections: load.Connections{Waited: tt.waited}}
		for _, outcomes := range [][]outcome{nil, {{failed: true}}} {
			f, ok := errors.AsType[*cli.Failure]((&summary{res: res, open: true, outcomes: outcomes}).verdict())
			if !ok || !strings.Contains(f.Hint, tt.want) || strings.Contains(f.Hint, tt.not) || f.Error() != said {
				t.Errorf("%v of CPU, waited %t, %d failed: got %+v, want %q and the hint %q, not %q", tt.cpu, tt.waited, len(outcomes), f, said, tt.want, tt.not)
			}
		}
	}
	busy := summary{res: &load.Result{Elapsed: time.Second, Threads: 1, Generator: load.Generator{CPU: 9 * time.Second / 10, Bound: true}}, open: true}
	if got, want := fmt.Sprint(busy.verdict()), "the rate may not have been offered on time: the generator was busy for 90.0 % of the time"; got != want {
		t.Errorf("busy: got %q, want %q", got, want)
	}
	busy.res.Stopped = true
	if got, want := fmt.Sprint(busy.verdict()), "the rate was not offered on time: the generator was stopped during the run"; got != want {
		t.Errorf("stopped: got %q, want %q", got, want)
	}
}

// Nothing but the cause of the first refusal is said of a target that nobody reaches.
func TestUnreachable(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cli.ErrUnreachable)
	res := &load.Result{Warnings: []error{fmt.Errorf("2 of 2 requests were refused; the first: %w", errors.New("nothing listens")), errors.New("the generator was late")}}
	if got := unreachable(ctx, res); got == nil || got.Error() != "no connection could be made: nothing listens" {
		t.Errorf("got %v, want the cause of the refusals alone", got)
	}
}

// The generator's line tells how late it was itself, not of the wait for connections.
func TestGeneratorLine(t *testing.T) {
	late, lag := hist.New(), hist.New()
	late.RecordN(int64(2*time.Millisecond), 1000)
	lag.RecordN(int64(time.Second), 1000)
	s := summary{res: &load.Result{Elapsed: time.Second, Threads: 1, Generator: load.Generator{Late: late, Lag: lag, Unread: hist.New()}}, open: true}
	if got, want := s.generator(), "kept from the CPU by others: 0.0 % of 1 thread busy, late p99 2.00 ms"; got != want {
		t.Errorf("idle: got %q, want %q", got, want)
	}
	s.res.CPU = 6 * time.Second / 10
	if got, want := s.generator(), "not the bottleneck: 60.0 % of 1 thread busy, late p99 2.00 ms"; got != want {
		t.Errorf("busy: got %q, want %q", got, want)
	}
}

// Requests that wait for a connection are among the most. One that is due and has yet to
// be taken up is not, but of those averaged: where the generator is late the average is
// more than the most.
func TestFlightLine(t *testing.T) {
	res := &load.Result{Elapsed: time.Second, Counts: snapshot(0).Counts, PeakFlight: 3, MeanFlight: 4.5}
	for open, want := range map[bool]string{false: "at most 3 in flight, 4.5 on average", true: "at most 3 in flight or waiting for one, 4.5 in flight or due on average"} {
		s := summary{res: res, open: open}
		var out strings.Builder
		if err := doc.Text(&out, doc.Page{Blocks: []doc.Block{s.facts()}}, doc.TextOptions{Width: 200}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, want+"\n") {
			t.Errorf("open loop %t: want %q in\n%s", open, want, got)
		}
	}
}

// What is offered is of the time that was asked for, whichever bound is met first.
func TestPlanned(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name string
		o    load.Options
		want time.Duration
	}{
		{"nothing asked for", load.Options{}, 10 * s},
		{"requests in the closed loop", load.Options{Requests: 50}, 0},
		{"requests", load.Options{Requests: 50, Schedule: pace.Constant(100)}, s / 2},
		{"random requests", load.Options{Requests: 50, Schedule: pace.Poisson(100, 1)}, s / 2},
		{"requests before the end", load.Options{Requests: 50, Duration: s, Schedule: pace.Constant(100)}, s / 2},
		{"the end before requests", load.Options{Requests: 500, Duration: s, Schedule: pace.Constant(100)}, s},
		{"requests of a schedule that ends", load.Options{Requests: 150, Schedule: pace.Steps(s, 100, 200)}, 5 * s / 4},
		{"requests without end", load.Options{Requests: math.MaxInt64, Duration: s, Schedule: pace.Constant(100)}, s},
		{"a schedule that ends before", load.Options{Requests: 1000, Schedule: pace.Steps(s, 100, 200)}, 2 * s},
	} {
		if got := planned(c.o); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// What is offered is what was asked for, unless the run ended early.
func TestOffered(t *testing.T) {
	for _, c := range []struct {
		planned, elapsed time.Duration
		ended, want      string
	}{
		{time.Second, 900 * time.Millisecond, "", "10/s offered, 11.1/s answered"},
		{time.Second, 2 * time.Second, "", "10/s offered, 5/s answered"},
		{time.Minute, 2 * time.Second, "interrupted", "5/s offered, 5/s answered"},
		{time.Second, 2 * time.Second, "interrupted", "10/s offered, 5/s answered"},
	} {
		s := summary{res: &load.Result{Elapsed: c.elapsed, Ended: c.ended, Counts: load.Counts{Scheduled: 10, Status: [6]uint64{2: 10}}}, open: true, planned: c.planned}
		if got := s.rate(); got != c.want {
			t.Errorf("%v planned, %v, ended %q: got %q, want %q", c.planned, c.elapsed, c.ended, got, c.want)
		}
	}
}

func TestSearchVerdict(t *testing.T) {
	bound := []load.Probe{
		{Rate: 100, Held: true, Result: &load.Result{}},
		{Rate: 400, Result: &load.Result{}},
		{Rate: 200, Bound: true, Result: &load.Result{Generator: load.Generator{Bound: true}}},
	}
	again := load.Probe{Rate: 100, Confirm: true, Result: &load.Result{}}
	for _, c := range []struct {
		name  string
		found load.SearchResult
		want  int
		says  string
	}{
		{"found", load.SearchResult{Rate: 100, Confirmed: true, Probes: bound[:2]}, 0, "100/s is the highest rate found to hold p99<1ms, confirmed"},
		{"not confirmed", load.SearchResult{Rate: 100, Probes: bound[:2]}, cli.ExitInconclusive, "100/s held p99<1ms, not confirmed"},
		{"none", load.SearchResult{Probes: bound[1:2]}, cli.ExitThreshold, "no rate held p99<1ms"},
		{"held once", load.SearchResult{Probes: []load.Probe{bound[0], bound[1], again}}, cli.ExitInconclusive, "100/s held p99<1ms once, and not again"},
		{"bound", load.SearchResult{Rate: 100, Confirmed: true, Probes: bound}, cli.ExitNotOffered, "100/s is the highest rate found"},
		{"bound at first", load.SearchResult{Probes: bound[2:]}, cli.ExitNotOffered, "no rate was found to hold p99<1ms: the generator was the limit"},
		{"late, and the target slow", load.SearchResult{Probes: []load.Probe{{Rate: 200, Result: &load.Result{Generator: load.Generator{Bound: true}}}}}, cli.ExitThreshold, "no rate held p99<1ms"},
		{"interrupted", load.SearchResult{Ended: "interrupted"}, cli.ExitInterrupted, "no rate was found yet"},
	} {
		if got := statusOf(searchVerdict(&c.found)); got != c.want {
			t.Errorf("%s: got status %d, want %d", c.name, got, c.want)
		}
		c.found.Threshold = "p99<1ms"
		var out bytes.Buffer
		if err := doc.Text(&out, new(Command).searchPage(&c.found), doc.TextOptions{Width: 120}); err != nil || !strings.Contains(out.String(), "\n"+c.says) {
			t.Errorf("%s: got %q (%v), want %q", c.name, &out, err, c.says)
		}
	}
}

func TestSpark(t *testing.T) {
	for _, c := range []struct {
		values []float64
		width  int
		want   string
	}{
		{[]float64{0, 50, 100}, 10, "·▅█  0/s to 100/s"},
		{[]float64{0, 0}, 10, "··  0/s to 0/s"},
		{[]float64{0, 0, 80, 80, 40, 40, 10}, 4, "·█▅▂  0/s to 80/s"},
	} {
		if got := spark(c.values, c.width); got != c.want {
			t.Errorf("spark(%v, %d): got %q, want %q", c.values, c.width, got, c.want)
		}
	}
}

func TestBinsHoldEverything(t *testing.T) {
	for _, values := range [][]int64{{5}, {0, 0, 1}, {1000, 2000, 900_000}, {math.MaxInt64, 1}} {
		h := hist.New()
		for _, v := range values {
			h.Record(v)
		}
		var sum float64
		all := bins(h, liveBins)
		for _, b := range all {
			sum += b.share
			if b.share < 0 {
				t.Errorf("bins of %v: got share %v, want none below 0", values, b.share)
			}
		}
		if math.Abs(sum-1) > 1e-9 || all[len(all)-1].upTo != h.Max() {
			t.Errorf("bins of %v: got a sum of %v up to %d, want 1 up to %d", values, sum, all[len(all)-1].upTo, h.Max())
		}
	}
	if got := bins(hist.New(), liveBins); got != nil {
		t.Errorf("bins of nothing: got %v, want none", got)
	}
}

// snapshot is of a run under way, with some of everything.
func snapshot(elapsed time.Duration) load.Snapshot {
	h := hist.New()
	for i := range int64(200_000) {
		h.Record(1000 * (i%500 + 1))
	}
	return load.Snapshot{
		Elapsed: elapsed, Total: 10 * time.Second, Rate: 51_234, Flight: 64, Response: h, Service: h,
		Counts: load.Counts{Scheduled: 200_010, Status: [6]uint64{2: 199_990, 5: 10}, Refused: 5, Timeout: 5},
	}
}

// What is loaded is told as it is asked for, but for a password.
func TestLoadTitle(t *testing.T) {
	for given, want := range map[string]string{
		"localhost:8080/go?to=http://example.com/": "http://localhost:8080/go?to=http://example.com/",
		":8080/@ada?mail=ada@example.com":          "http://localhost:8080/@ada?mail=ada@example.com",
		"https://joe:secret@h/":                    "https://…@h/",
	} {
		c := Command{URLs: []string{given}}
		if got := c.title(); got != want+", closed loop of 64 connections" {
			t.Errorf("%s: got the title %q, want %q first", given, got, want)
		}
	}
}

// Arrivals that nobody gave a seed are those of seed 1.
func TestLoadSeed(t *testing.T) {
	for _, seed := range []uint64{0, 1} {
		c := Command{URLs: []string{"localhost"}, Offer: Offer{Rate: "poisson:10", Seed: seed}, Carriage: Carriage{TLSResume: true, Engine: "auto"}}
		if o, err := c.options(); err != nil || o.Schedule.Seed != 1 {
			t.Errorf("--seed %d: got %+v (%v), want arrivals of seed 1", seed, o.Schedule, err)
		}
	}
}

func TestScreenFits(t *testing.T) {
	f := newFrame(snapshot(5*time.Second), watcherOptions{})
	for _, size := range []struct{ width, height int }{{200, 60}, {80, 24}, {60, 20}, {40, 12}, {20, 8}} {
		s := screen{
			options: watcherOptions{Title: "http://localhost:8080/a/rather/long/path, closed loop of 64 connections"},
			frame:   f, width: size.width, height: size.height, said: []string{"first", "second"},
		}
		rows := strings.Split(s.View().Content, "\n")
		if size.height >= 12 && len(rows) > size.height {
			t.Errorf("screen of %d×%d: got %d rows, want at most %d", size.width, size.height, len(rows), size.height)
		}
		for _, r := range rows {
			if w := lipgloss.Width(r); w > size.width {
				t.Errorf("screen of %d×%d: got a row of %d columns: %q", size.width, size.height, w, r)
			}
		}
	}
}

func TestWatcherWritesLineASecond(t *testing.T) {
	var errs bytes.Buffer
	w := newWatcher(&cli.Terminal{Err: &errs}, watcherOptions{Stop: func(error) {}})
	for _, ms := range []int{-750, -500, 250, 500, 750, 1000, 1250, 2000, 250} {
		w.progress(snapshot(time.Duration(ms) * time.Millisecond))
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(errs.String()) {
		when, _, _ := strings.Cut(line, "  ")
		got = append(got, when)
	}
	want := []string{"warming up, 0.8 s left", "0.2 s of 10.0 s", "1.0 s of 10.0 s", "2.0 s of 10.0 s", "0.2 s of 10.0 s"}
	if !slices.Equal(got, want) {
		t.Errorf("lines of a run and the next: got %q, want %q", got, want)
	}
}

func TestSummaryFitsNarrowTerminals(t *testing.T) {
	h := snapshot(0).Service
	res := &load.Result{Elapsed: 10 * time.Second, Threads: 2, Counts: snapshot(0).Counts,
		Response: h, Service: h, FirstByte: h, Connect: h, Handshake: hist.New(),
		WarmUp:   load.Counts{Scheduled: 12_345_678},
		Warnings: []error{errors.New(strings.Repeat("words ", 40))}, Generator: load.Generator{Lag: h, Late: h, Unread: h}, Connections: load.Connections{Full: 1000, Resumed: 20_000}}
	for i, width := range []int{120, 80, 80, 60, 60, 40, 40} {
		var out bytes.Buffer
		s := summary{res: res, open: i%2 == 0, title: "http://localhost/"}
		if err := doc.Text(&out, s.page(width), doc.TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > width {
				t.Errorf("summary at %d columns: got a line of %d: %q", width, w, line)
			}
		}
	}
}
