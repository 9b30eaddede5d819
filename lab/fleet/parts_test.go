package fleet_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/fleet"
	"github.com/tarehq/tare/lab/fleet/wire"
	"github.com/tarehq/tare/load"
	"github.com/tarehq/tare/load/pace"
	"github.com/tarehq/tare/stats/hist"
)

// Quantiles of what eight agents sent are those of all their samples, to the histogram's
// precision.
func TestMergedQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []int64
	var results []*load.Result
	for k := range 8 {
		r := &load.Result{Started: time.Now(), Elapsed: time.Second, Response: hist.New(), Service: hist.New(), FirstByte: hist.New(), Connect: hist.New(), Handshake: hist.New(),
			Generator: load.Generator{Lag: hist.New(), Late: hist.New(), Unread: hist.New()}}
		for range 5000 {
			v := int64(math.Exp(13 + float64(k)/4 + rng.NormFloat64()))
			all = append(all, v)
			r.Response.Record(v)
		}
		came, err := travel(r)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, came)
	}
	slices.Sort(all)
	merged := fleet.MergeResults(results...).Response
	for _, q := range []float64{0, .001, .01, .5, .9, .99, .999, .9999, 1} {
		want := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
		if got := merged.Quantile(q); got < want || float64(got-want) > float64(want)/1000 {
			t.Errorf("quantile %v is %d, want %d or up to 0.1 %% above", q, got, want)
		}
	}
	if merged.Min() != all[0] || merged.Max() != all[len(all)-1] {
		t.Errorf("extremes %d and %d, want %d and %d", merged.Min(), merged.Max(), all[0], all[len(all)-1])
	}
}

// travel is what comes out of a result that goes from an agent to the coordinator.
func travel(r *load.Result) (*load.Result, error) {
	base := r.Started.Add(-time.Minute)
	sent := wire.PackResult(r, base)
	text, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	m := &wire.Message{Hists: sent.Hists}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	return wire.UnpackResult(m, base)
}

// sliceAt is a slice in which so many answers took so long.
func sliceAt(second int, n uint64, took time.Duration) (load.Slice, []byte) {
	h := hist.New()
	h.RecordN(int64(took), n)
	return load.Slice{At: time.Duration(second) * time.Second, Answered: n, Failed: 1, BytesIn: 10}, h.Append(nil)
}

// cameOf is a part with one slice for each second from one to another.
func cameOf(agent, from, to int, took time.Duration, final bool) fleet.Came {
	c := fleet.Came{Agent: agent, At: time.Duration(to) * time.Second, Part: wire.Part{Elapsed: time.Duration(to) * time.Second, Final: final}}
	for s := from; s < to; s++ {
		sl, h := sliceAt(s, 10, took)
		c.Part.Slices, c.Hists = append(c.Part.Slices, sl), append(c.Hists, h)
	}
	return c
}

// Slices of agents meet in those of the whole, however far apart they come.
func TestSlicesMeet(t *testing.T) {
	got, err := fleet.Merge(3, load.Options{}, []fleet.Came{
		cameOf(0, 0, 1, time.Millisecond, false), cameOf(0, 1, 9, time.Millisecond, false),
		cameOf(2, 0, 0, 0, false), // nothing ended there
		cameOf(1, 0, 2, 3*time.Millisecond, false), cameOf(1, 2, 9, 3*time.Millisecond, true),
		cameOf(2, 8, 9, 5*time.Millisecond, true),
	})
	if err != nil || len(got) != 9 {
		t.Fatalf("got %d slices, %v; want 9", len(got), err)
	}
	for i, s := range got {
		want := load.Slice{At: time.Duration(i) * time.Second, Answered: 20, Failed: 2, BytesIn: 20}
		if i == 8 {
			want.Answered, want.Failed, want.BytesIn = 30, 3, 30
		}
		longest := s.Max
		s.P50, s.P99, s.Max = 0, 0, 0
		if s != want || longest < 3*time.Millisecond {
			t.Errorf("slice %d is %+v, at most %v; want %+v, and 3 ms or more", i, s, longest, want)
		}
	}
	for what, came := range map[string][]fleet.Came{
		"a slice twice":          {cameOf(0, 0, 2, 1, false), cameOf(0, 1, 3, 1, false)},
		"a slice of the future":  {{Agent: 0, At: time.Second, Part: cameOf(0, 5, 6, 1, true).Part, Hists: cameOf(0, 5, 6, 1, true).Hists}},
		"a slice without times":  {{Agent: 0, At: time.Hour, Part: cameOf(0, 0, 1, 1, true).Part}},
		"a slice between slices": {{Agent: 0, At: time.Hour, Part: wire.Part{Slices: []load.Slice{{At: 1}}}, Hists: [][]byte{{0}}}},
		"a broken histogram":     {{Agent: 0, At: time.Hour, Part: wire.Part{Slices: []load.Slice{{}}}, Hists: [][]byte{{9}}}},
	} {
		if got, err := fleet.Merge(1, load.Options{}, came); err == nil {
			t.Errorf("%s: got %+v, want an error", what, got)
		}
	}
}

// The shares of a load add up to it, and each travels whole.
func TestShareOut(t *testing.T) {
	length := int64(5)
	o := load.Options{
		Targets:     []load.Target{{Method: "POST", URL: "http://h/{{a}}", Header: []load.Field{{Name: "A", Value: "b"}}, Body: []byte{0, 255}, Weight: 3, Verify: load.Verify{Status: 200, Length: &length}}},
		Schedule:    pace.Ramp(10, 90, 4*time.Second),
		Connections: 10, MaxInFlight: 7, Requests: 11, WarmUp: time.Second, Timeout: -1, NewConnections: .5,
		Protocol: load.HTTP2, TLS: &tls.Config{InsecureSkipVerify: true}, CPUs: []int{0}, Threads: 1, Seed: 9,
		Progress: func(load.Snapshot) {}, Mark: func(bool) {},
	}
	var starts []time.Duration
	connections, flight, requests := 0, 0, int64(0)
	seeds := map[uint64]bool{}
	for k := range 3 {
		got, err := fleet.ShareOut(o, k, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		for c := got.Schedule.Cursor(0, 1); ; {
			at, ok := c.Next()
			if !ok {
				break
			}
			starts = append(starts, at)
		}
		connections, flight, requests = connections+got.Connections, flight+got.MaxInFlight, requests+got.Requests
		seeds[got.Seed] = true
		if !reflect.DeepEqual(got.Targets, o.Targets) || got.WarmUp != o.WarmUp || got.Timeout != o.Timeout || got.NewConnections != .5 || got.Protocol != load.HTTP2 {
			t.Errorf("share %d is %+v of %+v", k, got, o)
		}
		if !got.TLS.InsecureSkipVerify || got.CPUs != nil || got.Threads != 0 {
			t.Errorf("share %d: TLS %v, CPUs %v, threads %d; want no verifying, and neither of these", k, got.TLS, got.CPUs, got.Threads)
		}
	}
	slices.Sort(starts)
	var want []time.Duration
	for c := o.Schedule.Cursor(0, 1); ; {
		at, ok := c.Next()
		if !ok {
			break
		}
		want = append(want, at)
	}
	if !slices.Equal(starts, want) || connections != 10 || flight != 7 || requests != 11 || len(seeds) != 3 {
		t.Errorf("shares have %d starts, %d connections, %d in flight, %d requests, %d seeds; want %d, 10, 7, 11, 3",
			len(starts), connections, flight, requests, len(seeds), len(want))
	}
	for what, o := range map[string]load.Options{
		"too few connections": {Connections: 2},
		"too few requests":    {Requests: 2},
		"unknown authorities": {TLS: &tls.Config{RootCAs: x509.NewCertPool()}},
		"records":             {Feeder: new(load.Feeder)},
	} {
		if _, err := fleet.ShareOut(o, 0, 3, nil); !errors.Is(err, fleet.ErrUnshared) {
			t.Errorf("%s: %v, want ErrUnshared", what, err)
		}
	}
}

// slicesOf are those of n agents that answer alike but for the first, whose times are so
// many times as long. noise is the standard deviation of a second's times, as a logarithm.
func slicesOf(rng *rand.Rand, n, seconds int, factor, noise float64) [][]load.Slice {
	all := make([][]load.Slice, n)
	for s := range seconds {
		second := math.Exp(rng.NormFloat64() / 4) // of the server's: all agents see it
		for k := range all {
			p50 := 2e6 * second * math.Exp(noise*rng.NormFloat64())
			if k == 0 {
				p50 *= factor
			}
			all[k] = append(all[k], load.Slice{At: time.Duration(s) * time.Second, Answered: 100, P50: time.Duration(p50), P99: time.Duration(p50 * (2 + rng.Float64()))})
		}
	}
	return all
}

// TestUnlike holds the rule against simulated loads: how often it finds an agent among alike
// ones, and how often it misses one that is not.
func TestUnlike(t *testing.T) {
	const runs = 2000
	rng := rand.New(rand.NewPCG(3, 4))
	found := func(n, seconds int, factor, noise float64) (first, some float64) {
		for range runs {
			texts := fleet.FindUnlike(slicesOf(rng, n, seconds, factor, noise))
			if texts[0] != "" {
				first += 1. / runs
			}
			if slices.ContainsFunc(texts, func(s string) bool { return s != "" }) {
				some += 1. / runs
			}
		}
		return first, some
	}
	for _, n := range []int{3, 8, 20} {
		// The noise is large, so that the test decides and not the least ratio. With 1 % of
		// false alarms, 1.7 % of these runs would have one in a test of a thousand.
		_, some := found(n, 30, 1, 1)
		if some > .017 {
			t.Errorf("%d agents alike: %.2f %% of loads have a false alarm, want at most 1 %%", n, 100*some)
		}
		t.Logf("%d agents alike: %.2f %% of %d loads have a false alarm", n, 100*some, runs)
	}
	for _, c := range []struct {
		n, seconds int
		factor     float64
	}{{8, 30, 1.3}, {3, 60, .7}} {
		if first, _ := found(c.n, c.seconds, c.factor, .1); first < .95 {
			t.Errorf("%d agents, one of %v times the others' times: found in %.1f %% of loads, want 95 %%", c.n, c.factor, 100*first)
		}
	}
}

func TestUnlikeEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	if found := fleet.FindUnlike(slicesOf(rng, 2, 100, 9, .1)); found[0] != "" || found[1] != "" {
		t.Errorf("of two agents: %q, want none: either could be the odd one", found)
	}
	if found := fleet.FindUnlike(slicesOf(rng, 8, 5, 9, .1)); slices.ContainsFunc(found, func(s string) bool { return s != "" }) {
		t.Errorf("within five seconds: %q, want none", found)
	}
	mute := slicesOf(rng, 4, 20, 1, .1)
	mute[2] = nil
	if found := fleet.FindUnlike(mute); !strings.Contains(found[2], "no answer") || found[0] != "" {
		t.Errorf("one without an answer: %q", found)
	}
	if found := fleet.FindUnlike(make([][]load.Slice, 4)); fmt.Sprint(found) != "[   ]" {
		t.Errorf("none has an answer: %q, want none", found)
	}
	// 2 of 2 coins: 1/2; 8 of 10: 2·(45+10+1)/1024.
	for _, c := range []struct {
		most, n int
		want    float64
	}{{2, 2, .5}, {8, 10, 112. / 1024}, {5, 10, 1}, {30, 30, 0x1p-29}} {
		if got := fleet.SignTest(c.most, c.n); math.Abs(got-c.want) > 1e-9*c.want+1e-15 {
			t.Errorf("%d of %d coins: %v, want %v", c.most, c.n, got, c.want)
		}
	}
}
