package stats_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tarehq/tare/stats"
)

func TestReplicatesRoundTrip(t *testing.T) {
	want := &stats.Replicates{
		Schema: stats.ReplicatesSchema, About: "a test",
		Metrics: map[string][][]float64{"cpu": {{1, 2}, {3, 4}}, "rate": {{5, 6.5}, {7, 8}}},
	}
	var buf bytes.Buffer
	if err := want.Write(&buf); err != nil {
		t.Fatal(err)
	}
	got, err := stats.ReadReplicates(&buf)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back %+v, %v, want %+v", got, err, want)
	}
	if logs := got.Logs("cpu"); logs[1][1] != math.Log(4) || len(logs) != 2 {
		t.Errorf("Logs(cpu) = %v, want the logarithms of %v", logs, want.Metrics["cpu"])
	}
	if logs := got.Logs("none"); len(logs) != 0 {
		t.Errorf("Logs of an unknown metric = %v, want none", logs)
	}
}

func TestReplicatesRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                                     "EOF",
		`{`:                                    "EOF",
		`{"schema":2,"metrics":{"a":[[1,2]]}}`: "schema 2",
		`{"schema":1,"metrics":{}}`:            "no metrics",
		`{"schema":1,"metrics":{"a":[]}}`:      "0 blocks",
		`{"schema":1,"metrics":{"a":[[1]]}}`:   "two arms or more",
		`{"schema":1,"metrics":{"a":[[1,2],[3]]}}`:          `metric "a", block 1: 1 values, want 2`,
		`{"schema":1,"metrics":{"a":[[1,0]]}}`:              "must be positive",
		`{"schema":1,"metrics":{"a":[[1,-2]]}}`:             "must be positive",
		`{"schema":1,"metrics":{"a":[[1,2]]},"metric":"x"}`: "unknown field",
		`{"schema":1,"metrics":{"a":[[1,2]],"b":[]}}`:       "blocks",
	} {
		if _, err := stats.ReadReplicates(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadReplicates(%s) = %v, want an error with %q", text, err, want)
		}
	}
	if err := (&stats.Replicates{}).Write(&bytes.Buffer{}); err == nil {
		t.Error("writing empty replicates: no error")
	}
}

func FuzzReadReplicates(f *testing.F) {
	f.Add([]byte(`{"schema":1,"about":"x","metrics":{"a":[[1,2],[3,4]]}}`))
	f.Add([]byte(`{"schema":1,"metrics":{"a":[[]],"b":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := stats.ReadReplicates(bytes.NewReader(data))
		if err != nil {
			return
		}
		for name := range rep.Metrics {
			if floor := stats.NoiseFloor(rep.Logs(name), 8, 200, seeded(1)); math.IsNaN(floor) {
				t.Errorf("accepted replicates %s have no floor for %q", data, name)
			}
		}
	})
}
