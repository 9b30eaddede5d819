package load_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/stats/hist"
)

// What shows the generator itself is told as such, and what does not is not: the
// time that it polls is no work, and a wait for a connection not its delay.
func TestGeneratorBound(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name      string
		cpu, spun time.Duration // in ten seconds on two threads
		late, lag time.Duration // at p99
		bound     bool
		waited    bool
		want      []string // the warnings
	}{
		{"at ease", 15 * time.Second, 0, ms / 2, ms / 2, false, false, nil},
		{"busy", 17 * time.Second, 0, ms / 2, ms / 2, true, false, []string{"the generator was busy for 85.0 % of the time on 2 threads"}},
		{"polling", 19 * time.Second, 15 * time.Second, ms / 2, ms / 2, false, false, nil},
		{"late", time.Second, 0, 2 * ms, 2 * ms, true, false, []string{"the generator was late"}},
		{"connections few", time.Second, 0, ms / 2, 2 * ms, false, true, []string{"no connection of 8 was free"}},
		{"late, and connections few", time.Second, 0, 11 * ms, 1000 * ms, true, true, []string{"the generator was late", "no connection of 8 was free for some requests: 1 % began 1.00 s or more late"}},
	}
	for _, tt := range tests {
		res := &load.Result{Elapsed: 10 * time.Second, Threads: 2,
			Response: hist.New(), Generator: load.Generator{CPU: tt.cpu, Spun: tt.spun, Lag: hist.New(), Late: hist.New()}}
		res.Late.RecordN(int64(tt.late), 1000)
		res.Lag.RecordN(int64(tt.lag), 1000)
		load.Judged(res, load.Options{Connections: 8})
		as := func(got error, want string) bool { return strings.Contains(got.Error(), want) }
		if res.Bound != tt.bound || res.Waited != tt.waited || !slices.EqualFunc(res.Warnings, tt.want, as) {
			t.Errorf("%s: got bound %t, waited %t, warnings %q; want %t, %t, %q", tt.name, res.Bound, res.Waited, res.Warnings, tt.bound, tt.waited, tt.want)
		}
	}
}

// A warning of dropped requests names the bound, if there is one.
func TestWarningOfDropped(t *testing.T) {
	for most, want := range map[int]string{
		0:  "1 of 2 requests was dropped: the run ended before they could begin",
		10: "1 of 2 requests was dropped: more than 10 would have been in flight, or the run ended before they could begin",
	} {
		res := load.Judged(&load.Result{Counts: load.Counts{Scheduled: 2, Status: [6]uint64{2: 1}, Dropped: 1},
			Response: hist.New(), Generator: load.Generator{Lag: hist.New(), Late: hist.New()}}, load.Options{MaxInFlight: most})
		if len(res.Warnings) != 1 || res.Warnings[0].Error() != want {
			t.Errorf("at most %d: got warnings %q, want %q", most, res.Warnings, want)
		}
	}
}
