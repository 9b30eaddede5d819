package task_test

import (
	"os"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/tarehq/tare/internal/task"
)

const rest = " 10 20 30 0 -1 4194304 100 10 5 1 7 8 3 4 20 0 12 0 99999"

func TestParseStat(t *testing.T) {
	want := task.Stat{
		PID: 7, Name: "server", State: 'S', Parent: 10, Group: 20, Flags: 4194304, MinorFaults: 110, MajorFaults: 6,
		CPU: 150 * time.Millisecond, ReapedCPU: 70 * time.Millisecond, Threads: 12, Started: 99999,
	}
	odd := want
	odd.Name, odd.State, odd.Stack, odd.RSS = "a) b) (c", 'Z', 77, 200*uint64(os.Getpagesize())
	tests := []struct {
		line string
		want task.Stat
		ok   bool
	}{
		{"7 (server) S" + rest, want, true},
		{"7 (a) b) (c) Z" + rest + " 1000 200 18446744073709551615 1 2 77 0 0", odd, true},
		{"7 (server) S 1 2", task.Stat{}, false},
		{"7 (server) SS" + rest, task.Stat{}, false},
		{"7 (server) S x" + rest, task.Stat{}, false},
		{"seven (server) S" + rest, task.Stat{}, false},
		{"7 server S" + rest, task.Stat{}, false},
		{")(", task.Stat{}, false},
		{"", task.Stat{}, false},
	}
	for _, tt := range tests {
		if got, err := task.ParseStat(tt.line); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: got %+v, %v, want %+v", tt.line, got, err, tt.want)
		}
	}
}

// TestStatOfSelf holds ReadStat against another reader.
func TestStatOfSelf(t *testing.T) {
	got, err := task.ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	want, err := p.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if got.PID != want.PID || got.Parent != want.PPID || got.Group != want.PGRP || got.Name != want.Comm ||
		got.Started != want.Starttime || got.Flags != uint64(want.Flags) || got.Threads < 1 || got.RSS == 0 || got.MinorFaults == 0 || got.Ended() {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (server) S" + rest)
	f.Add("7 (a) b) S 1")
	f.Fuzz(func(t *testing.T, line string) {
		if s, err := task.ParseStat(line); err != nil && s != (task.Stat{}) {
			t.Errorf("%q: got %+v beside %v, want nothing", line, s, err)
		}
	})
}
