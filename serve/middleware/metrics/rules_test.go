package metrics_test

import (
	"os/exec"
	"testing"
)

// TestRules has promtool read the rules and hold them to what testdata/rules.yml says.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skipf("SKIPPED: the rules: %v (Debian package prometheus)", err)
	}
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "testdata/rules.yml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
