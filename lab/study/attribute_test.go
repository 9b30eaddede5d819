package study_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tarehq/tare/lab/study"
)

// Every round has each arm once a source, under each workload that is
// asked for, and the order is the seed's.
func TestCaptures(t *testing.T) {
	s := house(t)
	got := s.Captures(7)
	// 8 rounds of own and rival under half, by three sources.
	if want := 8 * 2 * 3; len(got) != want {
		t.Fatalf("%d captures, want %d", len(got), want)
	}
	rounds := map[int][]string{}
	for i, c := range got {
		if i > 0 && c.Round < got[i-1].Round {
			t.Fatalf("capture %d is of round %d after one of %d", i, c.Round, got[i-1].Round)
		}
		if want := map[bool]time.Duration{false: 5 * time.Second, true: study.LongestTrace}[c.Source == study.Trace]; c.For != want {
			t.Errorf("capture %d by %v takes %s, want %s", i, c.Source, c.For, want)
		}
		rounds[c.Round] = append(rounds[c.Round], fmt.Sprintf("%s%s[%s]", c.Workload, c.Arm, c.Source))
	}
	orders := map[string]bool{}
	for round, cells := range rounds {
		orders[fmt.Sprint(cells)] = true
		slices.Sort(cells)
		want := "[halfown[ebpf] halfown[pprof] halfown[trace] halfrival[ebpf] halfrival[pprof] halfrival[trace]]"
		if fmt.Sprint(cells) != want {
			t.Errorf("round %d has %v, want %s", round, cells, want)
		}
	}
	if len(orders) < 2 {
		t.Error("every round has one order, want them drawn")
	}
	if !reflect.DeepEqual(got, s.Captures(7)) {
		t.Error("the same seed gives other captures")
	}
}

func TestCapturesLeftOut(t *testing.T) {
	s := house(t)
	for _, c := range []struct {
		what string
		s    *study.Study
		want int
	}{
		{"quick form", s.QuickForm(), 6 * 2}, // one source
		{"without the rival", s.Without(map[string]string{"rival": ""}), 8 * 3},
		{"none of its arms", s.Without(map[string]string{"rival": "", "own": ""}), 0},
		{"no attribution", &study.Study{Arms: s.Arms, Workloads: s.Workloads}, 0},
	} {
		if got := len(c.s.Captures(1)); got != c.want {
			t.Errorf("%s: %d captures, want %d", c.what, got, c.want)
		}
	}
	// 12 captures of 0.5 s, 1 s and 0.1 s.
	if got, want := study.EstimateCaptures(s.QuickForm(), 100*time.Millisecond), 12*1600*time.Millisecond; got != want {
		t.Errorf("the captures of the quick form take %s, want %s", got, want)
	}
}
