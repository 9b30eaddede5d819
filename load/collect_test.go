package load_test

import (
	"fmt"
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
		want      string // the only warning; "": none
	}{
		{"at ease", 15 * time.Second, 0, ms / 2, ms / 2, false, ""},
		{"busy", 17 * time.Second, 0, ms / 2, ms / 2, true, "the generator was busy for 85 % of the time on 2 threads"},
		{"polling", 19 * time.Second, 15 * time.Second, ms / 2, ms / 2, false, ""},
		{"late", time.Second, 0, 2 * ms, 2 * ms, true, "the generator was late"},
		{"connections few", time.Second, 0, ms / 2, 2 * ms, false, "no connection of 8 was free"},
	}
	for _, tt := range tests {
		res := &load.Result{Elapsed: 10 * time.Second, Threads: 2, CPU: tt.cpu, Spun: tt.spun,
			Response: hist.New(), Lag: hist.New(), Late: hist.New()}
		res.Late.RecordN(int64(tt.late), 1000)
		res.Lag.RecordN(int64(tt.lag), 1000)
		load.Judged(res, 8)
		got := strings.Trim(fmt.Sprint(res.Warnings), "[]")
		if res.Bound != tt.bound || (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || len(res.Warnings) > 1 {
			t.Errorf("%s: got bound %t, warnings %q; want %t, %q", tt.name, res.Bound, res.Warnings, tt.bound, tt.want)
		}
	}
}
