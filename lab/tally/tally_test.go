package tally_test

import (
	"testing"

	"github.com/tarehq/tare/lab/record"
	"github.com/tarehq/tare/lab/tally"
)

// TestAgents counts trials, not the agents that had something to say about one.
func TestAgents(t *testing.T) {
	late := []string{"agent 10.0.0.7:7411 was late by 2.55 ms", "agent 10.0.0.8:7411 was late by 1.2 ms", "agent 10.0.0.8:7411 was busy"}
	got := tally.Of([]record.Trial{{Arm: "chi", Invalid: late}, {Arm: "chi", Invalid: late[:2]}, {Arm: "chi", Warnings: late}})
	if n := got.Invalid; len(n) != 2 || n[0].N != 2 || n[0].Reason != late[0] || n[1].N != 1 {
		t.Errorf("invalid: got %+v, want 2 late and 1 busy", n)
	}
	if n := got.Warning; len(n) != 2 || n[0].N != 1 || n[1].N != 1 {
		t.Errorf("warnings: got %+v, want 1 late and 1 busy", n)
	}
}
