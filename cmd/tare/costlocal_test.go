package main

import (
	"math"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/tarehq/tare/cost"
	"github.com/tarehq/tare/cost/pprof"
)

func TestRescale(t *testing.T) {
	for _, tt := range []struct {
		used, want time.Duration
		warned     bool
	}{
		{10 * time.Second, 10 * time.Second, true},
		{4 * time.Second, 4 * time.Second, false}, // as it is
		{4400 * time.Millisecond, 4 * time.Second, false},
		{time.Second, 4 * time.Second, false}, // the profile knows better than an idle process's clock
	} {
		frames := []cost.Frame{{Func: "main.main"}}
		b := &bill{cpu: pprof.New(pprof.CPU, time.Second, []cost.Stack{
			{Frames: frames, Count: 3, Value: 3e9}, {Frames: frames, Count: 1, Value: 1e9},
		})}
		b.rescale(tt.used)
		sum, count := 0.0, 0.0
		for _, s := range b.cpu.Stacks {
			sum += s.Value
			count += s.Count
		}
		if math.Abs(sum-float64(tt.want)) > 1 || count != 4 || len(b.warnings) > 0 != tt.warned {
			t.Errorf("counted %s: stacks add up to %s, seen %v times, warnings %v; want %s", tt.used, time.Duration(sum), count, b.warnings, tt.want)
		}
	}
}

func TestFindLocal(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := os.Getpid()
	if runtime.GOOS != "linux" {
		want = 0
	}
	for url, want := range map[string]int{
		"http://" + l.Addr().String() + "/debug/pprof/": want,
		"http://192.0.2.1:80/":                          0,
		"http://127.0.0.1/":                             0,
		"http://%zz/":                                   0,
	} {
		if got := findLocal(url); got.pid != want {
			t.Errorf("findLocal(%q) = %+v, want process %d", url, got, want)
		}
	}
}
